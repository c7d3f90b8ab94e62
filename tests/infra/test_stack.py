"""Parts of the stack that need nothing to run: shorter rules, what is sent, what is said where it cannot run."""

import copy
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stream_peer.errors import MissingExtraError, RejectedEvent
from stream_peer.events.incoming import decode
from stream_peer.tools.demo.feed import FEED
from tests.infra.stack import __main__ as entry
from tests.infra.stack import running
from tests.infra.stack.alertmanager import CONFIGURATION
from tests.infra.stack.events import FEEDS, TEAMS, VICTIM, clone_attack, poison, quiet_events, team_controls
from tests.infra.stack.running import ONCE, rule_files
from tests.infra.stack.shortened import shortened, shorter, windows
from tests.infra.support.rules import FILES, alerts, rules
from tests.infra.support.tools import program, run, said

FACTOR = ONCE.factor
DURATION = re.compile(r"\b\d+(ms|[smhdwy])\b")


def masked(document: dict[str, Any]) -> dict[str, Any]:
    """Rules without their times."""
    bare = copy.deepcopy(document)
    for group in bare["groups"]:
        for rule in group["rules"]:
            rule["expr"] = DURATION.sub("TIME", rule["expr"])
            rule["for"] = "TIME" if "for" in rule else None
    return bare


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shorter_rules_differ_in_nothing_but_their_times(file: Path) -> None:
    before = yaml.safe_load(file.read_text(encoding="utf-8"))
    told = copy.deepcopy(before)

    after = shortened(before, FACTOR)

    assert after != before
    assert before == told
    assert masked(after) == masked(before)
    assert shortened(before, 1.0) == before


def test_every_time_of_every_rule_is_shorter_by_the_factor() -> None:
    for rule in rules():
        (after,) = shortened({"groups": [{"name": "one", "rules": [rule]}]}, FACTOR)["groups"][0]["rules"]
        pairs = zip([*windows(rule["expr"])], [*windows(after["expr"])], strict=True)
        for long, short in [*pairs, *([(rule["for"], after["for"])] if "for" in rule else [])]:
            assert seconds(long) == pytest.approx(FACTOR * seconds(short)), f"{long} became {short}"


def seconds(duration: str) -> float:
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|[smhd])", duration))


@pytest.mark.parametrize(
    ("duration", "expected"), [("1h30m", "3m"), ("1d", "48m"), ("45s", "1500ms"), ("1ms", "1ms"), ("0s", "0s")]
)
def test_a_duration_is_divided(duration: str, expected: str) -> None:
    assert shorter(duration, FACTOR) == expected


def test_only_times_of_an_expression_are_touched() -> None:
    rule = {"alert": "A", "expr": 'x{path="5m"}[5m:1m] offset 1h > 30', "annotations": {"summary": "for 5m"}}

    (after,) = shortened({"groups": [{"name": "one", "rules": [rule]}]}, FACTOR)["groups"][0]["rules"]

    assert after["expr"] == 'x{path="5m"}[10s:2s] offset 2m > 30'
    assert after["annotations"] == rule["annotations"]


def test_rules_are_copied_only_to_be_shorter(tmp_path: Path) -> None:
    assert rule_files(tmp_path, 1.0) == [*FILES]

    copies = rule_files(tmp_path, FACTOR)
    result = run(program("promtool", "prometheus"), "check", "rules", *map(str, copies))

    assert result.returncode == 0, said(result)
    assert len(rules(tuple(copies))) == len(rules())


def test_alertmanager_takes_its_configuration_which_names_alerts_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "alertmanager.yml"
    path.write_text(yaml.safe_dump(CONFIGURATION), encoding="utf-8")
    result = run(program("amtool", "prometheus-alertmanager"), "check-config", str(path))

    assert result.returncode == 0, said(result)
    assert set(re.findall(r'="(StreamPeer\w+)"', str(CONFIGURATION))) <= alerts().keys()


def test_in_an_attack_clones_say_what_their_original_says_when_it_says_it() -> None:
    attack = [msgspec.json.decode(event.value) for event in clone_attack(quiet_events(), 3, 2)]
    saying: dict[str, list[tuple[Any, ...]]] = {}
    for event in attack:
        if event["type"] == "forecast":
            told = event["question_id"], event["probability"], event["at"]
            saying.setdefault(event["expert_id"], []).append(told)

    assert {event["question_id"] for event in attack} == {f"again-digit-000{number}" for number in (1, 2, 3)}
    assert {event["feed"] for event in attack if event["type"] == "question"} == {FEED}
    assert saying["clone-0"] == saying["clone-1"] == saying[VICTIM]


def test_everything_is_understood_but_the_poison() -> None:
    for event in (*clone_attack(quiet_events(), 3, 2), *quiet_events()[-10:]):
        decode(event.value)
    for event in poison(2):
        with pytest.raises(RejectedEvent, match="percent"):
            decode(event.value)


def test_the_copies_of_the_demo_are_in_teams() -> None:
    teams = {control["expert_id"]: control["team"] for control in team_controls()}

    assert teams == {expert: team for team, experts in TEAMS.items() for expert in experts}
    assert {control["feed"] for control in team_controls()} <= FEEDS.keys()


def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "prometheus-alertmanager" else name)

    with pytest.raises(MissingExtraError, match="apt-get install prometheus-alertmanager"):
        running.check_programs()
    assert entry.main() == 69
    assert "The stack cannot run here: prometheus-alertmanager not found" in capsys.readouterr().out
