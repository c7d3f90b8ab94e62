"""Registers the JSON Schemas of events and outputs at a schema registry that speaks Confluent's API."""

import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import closing
from http import HTTPStatus
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from stream_peer.errors import (
    NotAuthorisedError,
    RegistryUnavailableError,
    SchemaRefusedError,
    SettingFault,
    SettingsError,
)
from stream_peer.events import topics
from stream_peer.events.outputs import SCHEMA
from stream_peer.settings.process import Registry

_JSON = "application/vnd.schemaregistry.v1+json"
_SECONDS = 30.0
_UNKNOWN = (40401, 40402, 40403)  # subject, version, schema
_REFUSED = (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)


class Registered(NamedTuple):
    """A subject, the registry's number of its schema, and whether it was registered just now."""

    subject: str
    number: int
    is_new: bool


def topic_schema(topic: str) -> dict[str, Any]:
    """The schema of what stands on a topic, by its logical name: of the one message, or of any of several.

    Examples
    --------
    >>> topic_schema("weights")["$id"], [each["$id"] for each in topic_schema("control-events")["anyOf"]][:2]
    ('urn:stream-peer:weights:1', ['urn:stream-peer:expert:1', 'urn:stream-peer:feed:1'])
    """
    directory = files("stream_peer.events") / "schemas"
    found = [json.loads((directory / f"{name}.v{SCHEMA}.json").read_text("utf-8")) for name in topics.MESSAGES[topic]]
    if len(found) == 1:
        return dict(found[0])
    return {"$schema": found[0]["$schema"], "$id": f"urn:stream-peer:{topic}:{SCHEMA}", "title": topic, "anyOf": found}


def register_schemas(registry: Registry, url: str, physical: Callable[[str], str]) -> list[Registered]:
    """Register the schema of each topic that has one, in the order of the topics.

    Parameters
    ----------
    physical : callable
        Physical name of a topic.

    Raises
    ------
    SchemaRefusedError
        If the registry finds schemas incompatible: then none is registered.
    RegistryUnavailableError
        If it does not answer as a registry does.
    NotAuthorisedError
        If it wants other credentials.
    SettingsError
        If the authorities trusted cannot be loaded.
    """
    bodies = {
        f"{physical(topic)}-value": {"schemaType": "JSON", "schema": json.dumps(topic_schema(topic))}
        for topic in topics.MESSAGES
    }
    api = _Api(registry, url)
    with closing(api):
        known = {subject: api.post(f"subjects/{subject}", body) for subject, body in bodies.items()}
        new = {subject: body for subject, body in bodies.items() if known[subject] is None}
        refusals = {subject: _refusal(api, subject, body) for subject, body in new.items()}
        if any(refusals.values()):
            why = "; ".join(f"{subject}: {refusal}" for subject, refusal in refusals.items() if refusal)
            msg = f"The schema registry at {url} finds schemas incompatible, so none is registered: {why}"
            raise SchemaRefusedError(msg)
        answers = known | {subject: api.post(f"subjects/{subject}/versions", body) for subject, body in new.items()}
        return [Registered(subject, api.field(answers[subject], "id", int), subject in new) for subject in bodies]


def _refusal(api: "_Api", subject: str, body: dict[str, str]) -> str:
    """Why the schema would not be compatible with the subject's newest one; empty if it is, or there is none."""
    answer = api.post(f"compatibility/subjects/{subject}/versions/latest?verbose=true", body)
    if answer is None or api.field(answer, "is_compatible", bool):
        return ""
    return str((answer.get("messages") or ["it does not say why"])[0])


class _Api:
    """Asks a registry, and says in a sentence what was wrong with its answer."""

    def __init__(self, registry: Registry, url: str) -> None:
        server, self._url = urlsplit(url), url
        self._path = server.path
        self._headers = {"Accept": _JSON, "Content-Type": _JSON, **_login(registry)}
        self._connection = (
            http.client.HTTPConnection(server.netloc, timeout=_SECONDS)
            if server.scheme == "http"
            else http.client.HTTPSConnection(server.netloc, timeout=_SECONDS, context=_context(registry))
        )

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def post(self, path: str, body: dict[str, str]) -> dict[str, Any] | None:
        """The answer's object; None if what was asked for is not there."""
        try:
            self._connection.request("POST", f"{self._path}/{path}", json.dumps(body), self._headers)
            answer = self._connection.getresponse()
            status, text = answer.status, answer.read()
        except TimeoutError:
            msg = f"The schema registry at {self._url} did not answer within {_SECONDS:g} s."
            raise RegistryUnavailableError(msg) from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: of a host that is no name
            reason = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or type(error).__name__
            msg = f"The schema registry at {self._url} cannot be reached: {reason}."
            raise RegistryUnavailableError(msg) from None
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            msg = f"The schema registry at {self._url} refuses the user or password, or the right to {path} ({status})."
            raise NotAuthorisedError(msg)
        said = _object(text)
        if status == HTTPStatus.NOT_FOUND and said.get("error_code") in _UNKNOWN:
            return None
        if status in _REFUSED:
            msg = f"The schema registry at {self._url} refuses {path}: {said.get('message', status)}"
            raise SchemaRefusedError(msg)
        if status != HTTPStatus.OK:
            msg = (
                f"The schema registry at {self._url} answered {path} with {status}: {said.get('message', 'no reason')}"
            )
            raise RegistryUnavailableError(msg)
        return said

    def field(self, answer: Mapping[str, Any] | None, name: str, kind: type) -> Any:
        """A field of an answer, which must be there."""
        value = (answer or {}).get(name)
        if not isinstance(value, kind):
            msg = f"What answers at {self._url} is no schema registry: {name} is missing in its answer."
            raise RegistryUnavailableError(msg)
        return value


def _object(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _login(registry: Registry) -> dict[str, str]:
    if registry.username is None or registry.password is None:
        return {}
    login = f"{registry.username}:{registry.password.reveal()}"
    return {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}


def _context(registry: Registry) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=registry.ca_file)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or "no PEM that can be used"
        fault = SettingFault("registry.ca_file", str(registry.ca_file), f"cannot be loaded ({reason})")
        raise SettingsError([fault]) from None
