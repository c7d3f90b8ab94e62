"""The ACLs that ``topics plan`` prints, given by Kafka's own tool: with them and no more the whole product works."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.support.brokers import Rung, RunningBroker
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import crowd, question, resolution
from tests.integration.support.kafka_jars import fetch_jars
from tests.integration.support.secured_kafka import PASSWORD, SecuredKafka, kafka_with_acls
from tests.integration.support.service import Service, Shape, service

pytestmark = pytest.mark.real_kafka

ADMIN = "admin"
# A user each, by how the plan titles its rights.
SECTIONS = {"worker": "# A worker ", "setup": "# A user who runs `topics`", "reader": "# A user who runs `tail`"}
# In place of kafka-acls.sh: keeps what the shell hands over. Then one Java does it all, which starts in a second.
TOOL = """#!/bin/sh
printf '%s\\t' "$@" >> '{typed}'
echo >> '{typed}'
"""
PROGRAM = """
import java.nio.file.*;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.AclCommand;

class Typed {
    public static void main(String[] files) throws Exception {
        Exit.setExitProcedure((code, message) -> { if (code != 0) Runtime.getRuntime().halt(code); });
        for (String line : Files.readAllLines(Path.of(files[0]))) AclCommand.main(line.split("\\t"));
    }
}
"""
QUICK = "-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:SharedArchiveFile={archive}"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
CLIENT = """\
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={login} username="{user}" password="{password}";
ssl.truststore.type=PEM
ssl.truststore.location={ca}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("printed")


@pytest.fixture(scope="module")
def broker(directory: Path) -> Iterator[SecuredKafka]:
    with kafka_with_acls(directory / "broker", SECTIONS, ADMIN) as started:
        yield started


@pytest.fixture(scope="module")
def secured(broker: SecuredKafka, directory: Path) -> Iterator[Service]:
    """A deployment whose commands and workers log in over TLS; tests look over the plain address."""
    ca = directory / "ca.crt"
    ca.write_bytes(broker.files["ca/ca.crt"])
    security = {
        "protocol": "sasl_ssl",
        "mechanism": "SCRAM-SHA-512",
        "username": "worker",
        "password": PASSWORD,
        "ca_file": str(ca),
    }
    looking = KafkaClient(RunningBroker(broker.plain, Rung.JARS))
    with service(
        looking,
        directory,
        shape=Shape(questions=2, feeds=1),
        bootstrap=broker.bootstrap,
        security=security,
        feeds={feed: {"history": True} for feed in ("econ", "twin")},
    ) as made:
        yield made


def printed(service: Service, user: str, config: Path) -> list[str]:
    """The commands that the plan prints for one of the users."""
    plan = service.run("topics", "plan", "--offline", "--user", user, "--command-config", str(config))
    (section,) = [part for part in plan.split("\n\n") if part.startswith(SECTIONS[user])]
    return [line for line in section.splitlines() if not line.startswith("#")]


def give(service: Service, directory: Path) -> None:
    """Type what the plan prints."""
    config = directory / "admin.properties"
    config.write_text(CLIENT.format(login=LOGIN, user=ADMIN, password=PASSWORD, ca=directory / "ca.crt"))
    tools, typed = directory / "bin", directory / "typed"
    tools.mkdir()
    (tools / "kafka-acls.sh").write_text(TOOL.format(typed=typed))
    (tools / "kafka-acls.sh").chmod(0o755)
    (tools / "Typed.java").write_text(PROGRAM)
    lines = [line for user in SECTIONS for line in printed(service, user, config)]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-e", "-c", "\n".join(lines)], env=environment, check=True)
    assert len(typed.read_text().splitlines()) == len(lines)
    jars = fetch_jars(os.environ)
    program = ["java", *QUICK.format(archive=jars.archive).split(), "-cp", jars.class_path, str(tools / "Typed.java")]
    done = subprocess.run([*program, str(typed)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_with_the_printed_rights_and_no_more_everything_works(secured: Service, directory: Path) -> None:
    def run_as(user: str, *arguments: str) -> str:
        done = secured.command(*arguments, STREAM_PEER_SECURITY__USERNAME=user)
        assert done.returncode == 0, f"{user}, {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    before = secured.command("worker")
    give(secured, directory)
    run_as("setup", "topics", "apply")
    run_as("setup", "topics", "check")
    secured.start()
    run_as("setup", "settings", "apply")
    secured.wait_configured()
    for number in range(3):
        name = f"q{number}"
        secured.send([question(name, "econ", 48.0), *crowd(name, 6, 1.0), resolution(name, number % 2, 50.0)])
    secured.settle()
    secured.workers["w1"].wait_ready()
    told = json.loads(run_as("reader", "tail", "econ", "--once"))
    story = run_as("reader", "explain", "econ", "e1", "--json")
    replayed = run_as("reader", "replay", "--from-log", "econ")
    exported = str(directory / "econ.feed.gz")
    run_as("reader", "export", "econ", "--out", exported)
    run_as("setup", "expert", "econ", "e5", "--exclude")
    run_as("setup", "expert", "econ", "e4", "--rename", "e9")
    run_as("setup", "import", exported, "--as", "twin")
    run_as("setup", "delete", "twin", "--yes")
    run_as("worker", "repair", "--all")
    secured.settle()
    worker = secured.workers["w1"]
    answered, _ = worker.http("/feeds/econ/experts/e1/explain", patience=60.0)
    code = worker.terminate()

    assert before.returncode == 77
    assert "Rights are missing" in before.stderr
    assert len(told["experts"]) == 6
    assert json.loads(story)["until"]
    assert replayed
    assert [expert["id"] for expert in secured.weights("econ")["experts"]] == ["e0", "e1", "e2", "e3", "e9"]
    assert (answered, code) == (200, 0)
