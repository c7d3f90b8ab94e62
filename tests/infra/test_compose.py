from typing import Any

import pytest
import yaml

from stream_peer.settings import load
from tests.infra.support.tools import ROOT, run, said, tool

COMPOSE = "docker-compose.yml"


@pytest.fixture
def services() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / COMPOSE).read_text(encoding="utf-8"))
    found: dict[str, Any] = document["services"]
    return found


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def test_docker_compose_accepts_the_file() -> None:
    result = run(tool("docker-compose"), "--file", COMPOSE, "config", "--quiet")

    assert result.returncode == 0, said(result)


def test_the_file_follows_the_compose_schema() -> None:
    result = run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", COMPOSE)

    assert result.returncode == 0, said(result)


def test_compose_lint_finds_no_grave_fault() -> None:
    result = run(tool("compose-lint"), COMPOSE)

    assert result.returncode == 0, said(result)


def test_the_set_up_and_the_worker_can_do_nothing_but_their_work(services: dict[str, Any]) -> None:
    for name in ("set-up", "worker"):
        service = services[name]

        assert service["read_only"] is True, name
        assert service["user"] == "10001:10001", name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert {"mem_limit", "cpus", "pids_limit"} <= service.keys(), name


def test_ports_are_open_on_this_machine_only(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]

    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_worker_starts_after_the_broker_answers_and_the_topics_are_there(services: dict[str, Any]) -> None:
    waits = services["worker"]["depends_on"]

    assert waits["kafka"] == {"condition": "service_healthy"}
    assert waits["set-up"] == {"condition": "service_completed_successfully"}
    assert "stream-peer topics apply" in services["set-up"]["command"][0]
    assert "stream-peer settings apply" in services["set-up"]["command"][0]


def test_the_worker_is_given_longer_to_stop_than_it_takes(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    settings = load(ROOT / "docker-compose.settings.yaml").settings

    assert seconds(services["worker"]["stop_grace_period"]) > settings.shutdown_deadline


def test_the_settings_of_every_service_are_settings(services: dict[str, Any]) -> None:
    for name in ("set-up", "worker"):
        environment = services[name]["environment"]

        settings = load(ROOT / "docker-compose.settings.yaml", environment).settings

        assert settings.bootstrap == "kafka:19092", name
        assert f"NETWORK://{settings.bootstrap}" in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_every_mounted_file_is_there(services: dict[str, Any]) -> None:
    mounts = [volume for service in services.values() for volume in service.get("volumes", []) if volume[0] == "."]

    assert mounts
    assert all((ROOT / mount.split(":")[0]).is_file() for mount in mounts)
