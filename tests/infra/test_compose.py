"""The compose set-up, as Compose itself reads it: checked against the image, the chart and its own files."""

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_peer import __version__
from stream_peer.gateway.server import check_gateway
from stream_peer.settings.feed.document import load_document
from stream_peer.settings.process import Gateway, Settings, load, read_producers
from stream_peer.tools.demo.feed import FEED, SETTINGS
from tests.infra.support.prometheus import JOB
from tests.infra.support.tools import ROOT, needed, run, said, tool
from tests.infra.test_printed_commands import pages, parse

COMPOSE = "docker-compose.yml"
PROFILES: list[list[str]] = [[], ["demo"], ["gateway"], ["observability"], ["demo", "gateway", "observability"]]
ALWAYS = {"kafka", "set-up", "worker-0", "worker-1"}
WORKERS = ("worker-0", "worker-1")
OURS = (*WORKERS, "gateway", "set-up", "feeder")
OBSERVING = ("prometheus", "alertmanager", "grafana")
CHART = ROOT / "helm" / "stream-peer"
PRINTED = re.compile(r"docker compose ((?:[^`#\n](?!  ))*)")


def rendered(profiles: list[str]) -> dict[str, Any]:
    """What Compose makes of the file."""
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    result = run(tool("docker-compose"), "--file", COMPOSE, *chosen, "config", "--format", "json")
    assert result.returncode == 0, said(result)
    assert not result.stderr, said(result)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return rendered(PROFILES[-1])


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


def mounted(compose: dict[str, Any], service: str) -> dict[str, Path]:
    """Files and directories of this repository in a container, by where they are there."""
    own = compose["services"][service]
    files = {each["target"]: Path(compose["configs"][each["source"]]["file"]) for each in own.get("configs", [])}
    bound = {each["target"]: Path(each["source"]) for each in own.get("volumes", []) if each["type"] == "bind"}
    return files | bound


def document(compose: dict[str, Any], service: str, target: str) -> Any:
    """A file of YAML that is mounted."""
    return yaml.safe_load(mounted(compose, service)[target].read_text(encoding="utf-8"))


def settings_of(compose: dict[str, Any], service: str) -> Settings:
    """The settings that a command has in its container."""
    environment = {**compose["services"][service]["environment"]}
    for secret in ("SIGNING_KEY_FILE", "PRODUCERS_FILE", "GATEWAY__TOKENS_FILE"):
        environment.pop(f"STREAM_PEER_{secret}", None)  # it is in a volume
    file = mounted(compose, service)[environment["STREAM_PEER_CONFIG"]]
    return load(file, environment).settings


def seconds(text: str) -> float:
    minutes, rest = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", text).groups()  # type: ignore[union-attr] # else it fails
    return 60.0 * int(minutes or 0) + int(rest or 0)


# --- the file ---


@pytest.mark.parametrize("profiles", PROFILES, ids="+".join)
def test_compose_reads_it_with_every_profile(profiles: list[str]) -> None:
    names = set(rendered(profiles)["services"])

    expected = ALWAYS | ({"feeder"} if "demo" in profiles else set()) | ({"gateway"} & {*profiles})
    assert names == expected | (set(OBSERVING) if "observability" in profiles else set())


def test_the_file_follows_the_compose_schema() -> None:
    result = run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", COMPOSE)

    assert result.returncode == 0, said(result)


def test_compose_lint_finds_no_grave_fault() -> None:
    result = run(tool("compose-lint"), COMPOSE)

    assert result.returncode == 0, said(result)


def test_ports_are_open_on_this_machine_only_each_once(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]

    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    assert sorted(port["published"] for port in ports) == ["3000", "8080", "8081", "8082", "9090", "9092", "9093"]


def test_no_service_may_do_more_than_its_work(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "cpus", "pids_limit"} <= service.keys(), name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}, name
        if name != "kafka":
            assert service["read_only"] is True, name
            assert re.fullmatch(r"\d+:\d+", service["user"]), name


def test_the_heap_of_the_broker_leaves_room_for_the_rest_of_it(services: dict[str, Any]) -> None:
    kafka = services["kafka"]

    first, most = re.fullmatch(r"-Xms(\d+)m -Xmx(\d+)m", kafka["environment"]["KAFKA_HEAP_OPTS"]).groups()  # type: ignore[union-attr] # else it fails

    assert int(first) <= int(most)
    assert int(most) * 2**20 <= 0.6 * int(kafka["mem_limit"])


def test_images_are_named_exactly(services: dict[str, Any]) -> None:
    assert all(re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", service["image"]) for service in services.values())


def test_every_mounted_file_is_there_and_compose_can_mount_it(compose: dict[str, Any]) -> None:
    for service in compose["services"]:
        for target, source in mounted(compose, service).items():
            assert source.exists(), (service, target)
            assert source.is_relative_to(ROOT), (service, target)
    # It refuses to write an inline one ("content") into a root file system that is read-only, and only at the start.
    assert all("file" in config for config in compose["configs"].values())


def test_what_depends_on_another_waits_for_what_it_needs(services: dict[str, Any]) -> None:
    conditions = {
        (name, other): wait["condition"]
        for name, service in services.items()
        for other, wait in service.get("depends_on", {}).items()
    }

    assert conditions["set-up", "kafka"] == "service_healthy"
    assert {conditions[name, "set-up"] for name in (*WORKERS, "gateway")} == {"service_completed_successfully"}
    assert {conditions["feeder", worker] for worker in WORKERS} == {"service_healthy"}
    tested = {other for (_, other), condition in conditions.items() if condition == "service_healthy"}
    assert all("healthcheck" in services[name] for name in tested - set(WORKERS))  # the image brings theirs


def printed_commands(repository: Path) -> Iterator[list[str]]:
    for text in (*pages(repository).values(), (repository / COMPOSE).read_text(encoding="utf-8")):
        yield from (shlex.split(found) for found in PRINTED.findall(text))


def test_what_is_printed_to_be_typed_names_services_and_profiles_that_are_there(
    repository: Path, services: dict[str, Any]
) -> None:
    found = [words for words in printed_commands(repository) if words and not words[0].startswith("…")]

    profiles = {words[at + 1] for words in found for at, word in enumerate(words) if word == "--profile"}
    named = [next(w for w in words[1:] if w in services) for words in found if words[0] in {"exec", "run", "logs"}]
    assert profiles == {"demo", "gateway", "observability", "*"}
    assert len(named) >= 3
    for words in found:
        if "stream-peer" in words:
            parse(words[words.index("stream-peer") + 1 :])


# --- against the image ---


def commands(service: dict[str, Any]) -> list[list[str]]:
    """What a service of ours runs, as words behind ``stream-peer``."""
    if service["entrypoint"] is None:
        return [service["command"]]
    assert service["entrypoint"] == ["/bin/sh", "-ec"]
    lines = [shlex.split(line) for line in service["command"][0].splitlines()]
    return [line[1:] for line in lines if line[0] == "stream-peer"]


def test_every_command_is_one_of_the_image(services: dict[str, Any]) -> None:
    found = {name: commands(services[name]) for name in OURS}
    for words in (words for lines in found.values() for words in lines):
        parse(words)

    assert found["set-up"] == [["topics", "apply"], ["settings", "apply", "--no-wait"]]
    assert found["worker-0"] == found["worker-1"] == [["worker"]]
    assert found["gateway"] == [["gateway"]]
    assert found["feeder"][0][:2] == ["demo", "--send-only"]


STATE = "/var/lib/stream-peer"


@pytest.mark.parametrize(
    ("volume", "users", "files"),
    [
        ("signing-key", WORKERS, {"SIGNING_KEY_FILE": "signing-key"}),
        ("gateway", ["gateway"], {"PRODUCERS_FILE": "producers.yaml", "GATEWAY__TOKENS_FILE": "tokens"}),
    ],
)
def test_secrets_are_in_a_volume_that_only_those_mount_who_need_them(
    services: dict[str, Any], volume: str, users: Sequence[str], files: Mapping[str, str]
) -> None:
    mounts = {
        name: each
        for name, service in services.items()
        for each in service.get("volumes", [])
        if each["source"] == volume
    }

    assert {name: each.get("read_only", False) for name, each in mounts.items()} == {
        "set-up": False,
        **dict.fromkeys(users, True),
    }
    (directory,) = {each["target"] for each in mounts.values()}
    for name in users:
        told = {path: services[name]["environment"][f"STREAM_PEER_{path}"] for path in files}
        assert told == {path: f"{directory}/{file}" for path, file in files.items()}


def test_the_set_up_makes_secrets_once_says_none_and_the_gateway_takes_its_own(
    services: dict[str, Any], tmp_path: Path
) -> None:
    script = services["set-up"]["command"][0].replace("$$", "$").partition("stream-peer topics")[0]
    here = script.replace(STATE, str(tmp_path)).replace("python -c", f"{sys.executable} -c")
    keys, gateway = tmp_path / "keys", tmp_path / "gateway"
    keys.mkdir()
    gateway.mkdir()

    made = []
    for _ in range(2):
        result = run("/bin/sh", "-ec", here)
        assert result.returncode == 0, said(result)
        assert not result.stdout + result.stderr
        made.append({file: file.read_text() for file in tmp_path.glob("*/*")})

    assert made[0] == made[1]
    assert {file.name for file in made[0]} == {"signing-key", "platform.key", "producers.yaml", "tokens"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in made[0])
    secrets = [
        made[0][keys / "signing-key"],
        made[0][gateway / "platform.key"],
        *made[0][gateway / "tokens"].split()[1:],
    ]
    assert len({secret.strip() for secret in secrets if re.fullmatch(r"[0-9a-f]{64}\n?", secret)}) == 3
    settings = Settings(producers_file=gateway / "producers.yaml", gateway=Gateway(tokens_file=gateway / "tokens"))
    assert "platform" in check_gateway(settings, read_producers(settings))


def test_the_image_has_the_directories_of_secrets_and_they_are_its_users(services: dict[str, Any]) -> None:
    targets = [each["target"] for each in services["set-up"]["volumes"]]
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    names = [target.removeprefix(f"{STATE}/") for target in targets]

    assert f"COPY --from=build --chown={services['set-up']['user']} /opt/state {STATE}\n" in dockerfile
    assert f"RUN install -d -m 0700 {' '.join(f'/opt/state/{name}' for name in names)}\n" in dockerfile


def test_our_services_run_as_the_image_does(services: dict[str, Any]) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    for name in OURS:
        assert f"USER {services[name]['user']}\n" in dockerfile, name
        assert services[name]["build"]["context"] == str(ROOT), name
        assert any(mount.startswith("/tmp:") for mount in services[name]["tmpfs"]), name  # noqa: S108
        published = [port["target"] for port in services[name].get("ports", [])]
        assert all(f"EXPOSE {port}\n" in dockerfile for port in published), name


def test_every_service_of_ours_has_settings_and_reaches_the_broker(compose: dict[str, Any]) -> None:
    advertised = compose["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]

    for name in OURS:
        settings = settings_of(compose, name)
        assert f"NETWORK://{settings.bootstrap}" in advertised, name
        assert "kafka" in compose["services"][name]["networks"], name


def test_workers_differ_in_their_name_and_can_be_reached_where_they_are_published(compose: dict[str, Any]) -> None:
    for name in WORKERS:
        settings, service = settings_of(compose, name), compose["services"][name]

        assert settings.instance == name
        (port,) = service["ports"]
        assert (settings.http.host, settings.http.port) == ("0.0.0.0", port["target"])  # noqa: S104
        assert settings.http.advertise == f"http://{port['host_ip']}:{port['published']}", "whoever asks is on the host"
        assert seconds(service["stop_grace_period"]) > settings.shutdown_deadline


def test_the_feed_of_the_demo_has_the_settings_that_its_events_need(compose: dict[str, Any]) -> None:
    applied, wanted = settings_of(compose, "set-up").document, load_document(SETTINGS).of(FEED)

    ours = load_document(applied).of(FEED)
    assert (ours.history, ours.round_every, ours.grace) == (wanted.history, wanted.round_every, wanted.grace)


# --- against the chart ---


def test_image_and_port_are_those_of_the_chart(compose: dict[str, Any]) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert chart["appVersion"] == __version__
    for name in OURS:
        assert compose["services"][name]["image"] == f"{values['image']['repository']}:{__version__}"
    assert settings_of(compose, WORKERS[0]).http.port == values["http"]["port"]


def test_rules_and_dashboards_are_the_charts_own_files(compose: dict[str, Any]) -> None:
    rules = mounted(compose, "prometheus")["/etc/prometheus/rules"]
    dashboards = mounted(compose, "grafana")["/etc/stream-peer/dashboards"]

    assert (rules, dashboards) == (CHART / "rules", CHART / "dashboards")
    assert {file.name for file in rules.iterdir()} == {"alerts.yaml", "recording.yaml"}
    assert {file.name for file in dashboards.iterdir()} == {
        *("overview.json", "feed.json", "forecasters.json", "service.json"),
    }


# --- what observes ---


def test_prometheus_scrapes_the_workers_and_has_the_rules(compose: dict[str, Any], tmp_path: Path) -> None:
    needed("promtool")
    (target,) = (word.split("=")[1] for word in compose["services"]["prometheus"]["command"] if "config.file" in word)
    config = document(compose, "prometheus", target)
    (job,) = config["scrape_configs"]
    (rules,) = config["rule_files"]
    directory, pattern = rules.rsplit("/", 1)
    files = [str(file) for file in mounted(compose, "prometheus")[directory].iterdir() if fnmatch(file.name, pattern)]
    here = tmp_path / "prometheus.yaml"
    here.write_text(yaml.safe_dump({**config, "rule_files": files}))
    result = run("promtool", "check", "config", str(here))

    assert result.returncode == 0, said(result)
    assert len(files) == 2
    assert job["job_name"] == JOB
    targets = [f"{name}:{settings_of(compose, name).http.port}" for name in WORKERS]
    assert job["static_configs"] == [{"targets": targets}]
    # A name is no target while nobody has it: a profile that is off is not down.
    (found,) = job["dns_sd_configs"]
    assert (found["names"], found["type"], found["port"]) == (
        ["gateway"],
        "A",
        settings_of(compose, "gateway").http.port,
    )
    assert all("metrics" in compose["services"][name]["networks"] for name in (*WORKERS, "gateway", *OBSERVING))


def test_alertmanager_is_where_prometheus_sends_alerts(compose: dict[str, Any]) -> None:
    needed("amtool")
    config = document(compose, "prometheus", "/etc/prometheus/prometheus.yaml")
    (target,) = (word.split("=")[1] for word in compose["services"]["alertmanager"]["command"] if "config.file" in word)
    result = run("amtool", "check-config", str(mounted(compose, "alertmanager")[target]))

    assert result.returncode == 0, said(result)
    assert config["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["alertmanager:9093"]}]}]


def test_grafana_shows_the_dashboards_from_that_prometheus_to_whoever_looks(compose: dict[str, Any]) -> None:
    provisioning = "/etc/grafana/provisioning"
    (source,) = document(compose, "grafana", f"{provisioning}/datasources/stream-peer.yaml")["datasources"]
    (provider,) = document(compose, "grafana", f"{provisioning}/dashboards/stream-peer.yaml")["providers"]
    files = mounted(compose, "grafana")
    environment = compose["services"]["grafana"]["environment"]
    home, name = environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"].rsplit("/", 1)

    assert (source["type"], source["url"], source["isDefault"]) == ("prometheus", "http://prometheus:9090", True)
    assert source["uid"] == "stream-peer-prometheus"
    assert provider["options"]["path"] in files
    assert (files[home] / name).is_file()
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
