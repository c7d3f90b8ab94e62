"""Schemas are registered as Confluent's API wants it: by a stand-in that refuses whatever a registry would."""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import trustme

from stream_peer.events import topics
from tests.unit.cli.support import Ended, run

Capture = pytest.CaptureFixture[str]
Answer = tuple[int, dict[str, Any]]
TYPE = "application/vnd.schemaregistry.v1+json"
USER, PASSWORD = "ann", "päss"
_NO_SUBJECT: Answer = 404, {"error_code": 40401, "message": "no such subject"}
SUBJECTS = [f"acme-{topic}-value" for topic in topics.MESSAGES]


class StandIn(ThreadingHTTPServer):
    """A registry in memory, at https://127.0.0.1, which wants a user and a password."""

    daemon_threads = True

    def __init__(self, authority: trustme.CA) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server_port}/api"
        self.schemas: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.incompatible, self.refused = "", ""

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        schema = body.pop("schema")
        jsonschema.Draft202012Validator.check_schema(json.loads(schema))
        assert body == {"schemaType": "JSON"}
        match path.removeprefix("/api/").split("/"):
            case ["subjects", subject]:
                return self._looked_up(subject, schema)
            case ["compatibility", "subjects", subject, "versions", "latest?verbose=true"]:
                return self._compared(subject)
            case ["subjects", subject, "versions"]:
                return self._registered(subject, schema)
        return 404, {}

    def _looked_up(self, subject: str, schema: str) -> Answer:
        if subject not in self.schemas:
            return _NO_SUBJECT
        if schema not in self.schemas[subject]:
            return 404, {"error_code": 40403, "message": "no such schema"}
        version = self.schemas[subject].index(schema) + 1
        return 200, {"subject": subject, "id": 7, "version": version, "schema": schema}

    def _compared(self, subject: str) -> Answer:
        if subject not in self.schemas:
            return _NO_SUBJECT
        wrong = ["a property is another one"] if subject == self.incompatible else []
        return 200, {"is_compatible": not wrong, "messages": wrong}

    def _registered(self, subject: str, schema: str) -> Answer:
        if subject == self.refused:
            return 422, {"error_code": 42201, "message": "this is no schema"}
        if subject == self.incompatible:
            return 409, {"error_code": 409, "message": "incompatible"}
        self.schemas.setdefault(subject, []).append(schema)
        return 200, {"id": 7}


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        given = {name: self.headers[name] for name in ("Content-Type", "Accept", "Authorization")}
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.path)
        login = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if given["Authorization"] != f"Basic {login}":
            self._say(401, {"error_code": 401, "message": "who are you?"})
        elif given["Content-Type"] != TYPE or given["Accept"] != TYPE:
            self._say(415, {"error_code": 415, "message": "another content type"})
        else:
            self._say(*self.server.answer(self.path, body))

    def _say(self, status: int, said: dict[str, Any]) -> None:
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def registry(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("STREAM_PEER_PREFIX", "acme-")
    monkeypatch.setenv("STREAM_PEER_REGISTRY__CA_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("STREAM_PEER_REGISTRY__USERNAME", USER)
    monkeypatch.setenv("STREAM_PEER_REGISTRY__PASSWORD", PASSWORD)
    with StandIn(authority) as made:
        monkeypatch.setenv("STREAM_PEER_REGISTRY__URL", made.url)
        serving = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield made
        made.shutdown()
        serving.join()


def schemas(capsys: Capture, *flags: str) -> Ended:
    return run(capsys, "topics", "schemas", *flags)


def test_each_subject_has_its_topics_schema_which_its_messages_meet(
    registry: StandIn, repository: Path, capsys: Capture
) -> None:
    first, asked = schemas(capsys), len(registry.asked)
    again = schemas(capsys)

    assert first == (0, "".join(f"{subject}: schema 7, registered\n" for subject in SUBJECTS), "")
    assert again == (0, first.out.replace("registered", "which was there already"), "")
    assert registry.asked[asked:] == [f"/api/subjects/{subject}" for subject in SUBJECTS]
    for topic, messages in topics.MESSAGES.items():
        (schema,) = registry.schemas[f"acme-{topic}-value"]
        meets = jsonschema.Draft202012Validator(json.loads(schema)).is_valid
        for message in messages:
            lines = (repository / "examples" / "messages" / f"{message}.v1.jsonl").read_text().splitlines()
            assert all(meets(json.loads(line)) for line in lines), message
        assert not meets({"type": "forecast"})


def test_another_schema_is_checked_before_any_is_registered(registry: StandIn, capsys: Capture) -> None:
    registry.schemas = {subject: ["{}"] for subject in SUBJECTS[1:]}
    registry.incompatible = SUBJECTS[3]

    refused = schemas(capsys)
    kept = {subject: [*known] for subject, known in registry.schemas.items()}
    registry.incompatible = ""
    accepted = schemas(capsys)

    why = f"{SUBJECTS[3]}: a property is another one"
    none = "finds schemas incompatible, so none is registered"
    assert refused == (78, "", f"stream-peer: The schema registry at {registry.url} {none}: {why}\n")
    assert kept == {subject: ["{}"] for subject in SUBJECTS[1:]}
    assert accepted.code == 0
    assert [len(registry.schemas[subject]) for subject in SUBJECTS] == [1] + [2] * (len(SUBJECTS) - 1)


def test_what_a_registry_says_against_a_schema_is_repeated(registry: StandIn, capsys: Capture) -> None:
    registry.refused = SUBJECTS[0]

    ended = schemas(capsys)

    assert ended.code == 78
    assert ended.err.endswith(f"refuses subjects/{SUBJECTS[0]}/versions: this is no schema\n")


@pytest.mark.parametrize(
    ("variable", "value", "code", "says"),
    [
        ("USERNAME", "eve", 77, "refuses the user or password"),
        ("URL", "https://127.0.0.1:1", 69, "cannot be reached"),
        ("URL", "{url}/elsewhere", 69, "answered subjects/acme-forecast-events-value with 404"),
        ("URL", "http://127.0.0.1:1", 78, "readable by anyone on the wire; use https"),
        ("URL", "", 78, "registry.url"),
        ("PASSWORD", "", 78, "one of them is of no use without the other"),
        ("CA_FILE", "", 69, "certificate"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_exit_code(
    registry: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    variable: str,
    value: str,
    code: int,
    says: str,
) -> None:
    name = f"STREAM_PEER_REGISTRY__{variable}"
    monkeypatch.setenv(name, value.format(url=registry.url)) if value else monkeypatch.delenv(name)

    ended = schemas(capsys)

    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert PASSWORD not in ended.err
    assert not registry.schemas
