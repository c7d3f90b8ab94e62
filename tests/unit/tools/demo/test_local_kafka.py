from pathlib import Path

import pytest

from stream_peer.errors import BrokerUnavailableError, MissingExtraError
from stream_peer.tools.demo.brokers import LocalKafka, check_java, free_ports


def tool(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what the test puts there."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def test_a_machine_without_java_is_told_what_is_missing(tools: Path) -> None:
    with pytest.raises(MissingExtraError, match="needs Java 17, none is there"):
        check_java()


def test_an_old_java_is_named(tools: Path) -> None:
    tool(tools, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    with pytest.raises(MissingExtraError, match="Java 11 is there"):
        check_java()


def test_a_new_java_will_do(tools: Path) -> None:
    tool(tools, "java", "echo 'openjdk version \"21.0.2\"' >&2")
    check_java()


def test_without_jars_and_without_maven_both_ways_out_are_named(tools: Path, tmp_path: Path) -> None:
    tool(tools, "java", "echo 'openjdk version \"17\"' >&2")
    with pytest.raises(MissingExtraError, match="needs Maven"), LocalKafka({"XDG_CACHE_HOME": str(tmp_path)}):
        pass


def test_a_failing_maven_leaves_no_half_filled_cache(tools: Path, tmp_path: Path) -> None:
    tool(tools, "java", "echo 'openjdk version \"17\"' >&2")
    tool(tools, "mvn", "echo 'no network'; exit 1")
    with pytest.raises(BrokerUnavailableError, match="no network"), LocalKafka({"XDG_CACHE_HOME": str(tmp_path)}):
        pass
    assert [path for path in tmp_path.glob("stream-peer/**/*") if path.is_file()] == []


def test_free_ports_differ() -> None:
    assert len(set(free_ports(5))) == 5
