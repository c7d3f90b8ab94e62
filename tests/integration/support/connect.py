"""Kafka Connect with a recipe of `examples/sinks`, and the PostgreSQL that it fills: both real, for a test."""

import glob
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from stream_peer.tools.demo.brokers import end_process, free_ports
from tests.integration.support.kafka_broker import JVM
from tests.integration.support.kafka_jars import fetch_jars
from tests.integration.support.waiting import wait_until

POM = Path(__file__).with_name("connect.pom.xml")
_PROGRAMS = os.pathsep.join([os.environ.get("PATH", ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"))])
_USER, _PASSWORD, _DATABASE = "stream_peer", "not-trusted", "stream_peer"
_LOG4J = """\
<Configuration>
  <Appenders><Console name="log"><PatternLayout pattern="%d{HH:mm:ss.SSS} %p %c{1} %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="log"/></Root></Loggers>
</Configuration>
"""


def missing_package() -> str | None:
    """A package that this machine lacks for both."""
    needed = {"java": "openjdk-17-jre-headless", "mvn": "maven", "initdb": "postgresql", "psql": "postgresql"}
    return next((package for name, package in needed.items() if not shutil.which(name, path=_PROGRAMS)), None)


class Postgres:
    """A database that asks for a password, at 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.url = f"jdbc:postgresql://127.0.0.1:{port}/{_DATABASE}"
        self.password = _PASSWORD
        self._address = f"host=127.0.0.1 port={port} user={_USER} password={_PASSWORD} dbname="

    def is_up(self) -> bool:
        """Whether it serves; then it has the database."""
        return self._psql("postgres", "-c", f"create database {_DATABASE}").returncode == 0

    def run(self, *arguments: str, given: str = "") -> str:
        """Run psql with what is given at its input; what it prints."""
        done = self._psql(_DATABASE, *arguments, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query, by the names of their columns."""
        as_json = "select coalesce(json_agg(found), '[]') from (" + query + ") as found"  # noqa: S608 - a test's
        found: list[dict[str, Any]] = json.loads(self.run("-c", as_json))
        return found

    def _psql(self, database: str, *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        command = ["psql", self._address + database, "--no-psqlrc", "--set=ON_ERROR_STOP=1", "-qAt", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server with an empty database, gone afterwards. It refuses root, so another user runs it then."""
    (port,) = free_ports(1)
    as_user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="postgres-")))
        password, data, log = home / "password", home / "data", home / "log"
        password.write_text(_PASSWORD)
        if as_user:
            for path in (home, password):
                shutil.chown(path, **as_user)
        make = [_program("initdb"), "-D", str(data), "-U", _USER, "-A", "scram-sha-256", f"--pwfile={password}"]
        subprocess.run([*make, "--no-sync", "-E", "UTF8"], check=True, capture_output=True, cwd=home, **as_user)
        serve = [_program("postgres"), "-D", str(data), "-p", str(port), "-k", "", "-c", "fsync=off"]
        with log.open("wb") as out:
            server = subprocess.Popen(
                [*serve, "-c", "listen_addresses=127.0.0.1"], stdout=out, stderr=out, cwd=home, **as_user
            )
        stack.callback(end_process, server, 20.0)
        made = Postgres(port)

        def serves() -> bool:
            assert server.poll() is None, log.read_text()
            return made.is_up()

        wait_until(serves, 30.0, log.read_text)
        yield made


@contextmanager
def connect(
    recipes: Path, connector: Mapping[str, Any], directory: Path, bootstrap: str, **environment: str
) -> Iterator[Callable[[], str]]:
    """A Connect worker by the recipe's properties, with one connector; what it has logged."""
    lib = fetch_jars(os.environ, POM).lib
    (directory / "plugins").mkdir()
    own = {
        "bootstrap.servers": bootstrap,
        "plugin.path": str(directory / "plugins"),  # the connector is on the class path
        "offset.storage.file.filename": str(directory / "offsets"),
        "listeners": f"http://127.0.0.1:{free_ports(1)[0]}",
    }
    properties, file, log = directory / "connect.properties", directory / "connector.json", directory / "connect.log"
    given = (recipes / "connect.properties").read_text()
    properties.write_text("\n".join([given, *(f"{name}={value}" for name, value in own.items())]))
    file.write_text(json.dumps(connector))
    (directory / "log4j2.xml").write_text(_LOG4J)
    java = ["java", *JVM, f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}", "-cp", f"{lib}/*"]
    command = [*java, "org.apache.kafka.connect.cli.ConnectStandalone", str(properties), str(file)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment})
    try:
        yield log.read_text
    finally:
        end_process(process, 20.0)


def _program(name: str) -> str:
    found = shutil.which(name, path=_PROGRAMS)
    assert found, f"{name} is not installed"
    return found
