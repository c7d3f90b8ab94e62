import io
from typing import Any

import pytest

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError
from stream_peer.events.incoming import ExpertControl, FeedControl
from stream_peer.events.outputs import Weights
from stream_peer.kafka.client import control_events
from stream_peer.kafka.client.control_events import Written
from stream_peer.log.stage import LogRecord
from stream_peer.questions.repair import Controls
from stream_peer.serve import feed_records
from stream_peer.settings.process import Settings
from tests.feed_outputs import weights
from tests.unit.cli.support import run
from tests.unit.questions.question_log import T0, event

Capture = pytest.CaptureFixture[str]
Control = ExpertControl | FeedControl


class Terminal(io.StringIO):
    """A person who types an answer."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Control]:
    events: list[Control] = []

    def write(_: Settings, event: Control) -> Written:
        events.append(event)
        return Written(3, 17)

    monkeypatch.setattr(control_events, "write_control", write)
    return events


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> dict[str, Weights]:
    feeds = {"econ": weights(7, "ann", "bob")}

    def newest(_: Settings) -> dict[str, Weights]:
        return feeds

    monkeypatch.setattr(feed_records, "read_newest", newest)
    return feeds


@pytest.fixture(autouse=True)
def controls(monkeypatch: pytest.MonkeyPatch) -> Controls:
    """What stands on control-events: dora was excluded, so that no weights list her, and bob is called rob as well."""
    found = Controls()

    def read(_: Settings) -> Controls:
        return found

    changes: dict[str, dict[str, Any]] = {"dora": {"excluded": True}, "bob": {"rename": "rob"}}
    for offset, (expert, change) in enumerate(changes.items()):
        value = event("expert", feed="econ", expert_id=expert, at=T0, **change)
        found.add(0, LogRecord(offset, T0, b"econ", value))
    monkeypatch.setattr(control_events, "all_controls", read)
    return found


def named(event: Control) -> dict[str, Any]:
    """What of an event would change something."""
    assert isinstance(event, ExpertControl)
    asked = {"team": event.team, "excluded": event.excluded, "forget": event.forget or None}
    return {"feed": event.feed, "expert": event.expert_id, **asked}


@pytest.mark.parametrize(
    ("flags", "changes", "said"),
    [
        (["--exclude"], {"excluded": True}, "excluded"),
        (["--include"], {"excluded": False}, "included"),
        (["--team", "lab"], {"team": "lab"}, "in team lab"),
        (["--no-team"], {"team": None}, "in no team"),
        (["--team", "lab", "--include"], {"team": "lab", "excluded": False}, "in team lab, included"),
    ],
)
def test_a_change_of_an_expert_names_what_was_asked_for_and_nothing_else(
    capsys: Capture, written: list[Control], flags: list[str], changes: dict[str, Any], said: str
) -> None:
    from msgspec import UNSET

    ended = run(capsys, "expert", "econ", "ann", *flags)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"ann in feed econ: {said} (control-events 3, offset 17).\n"
    (control,) = written
    unchanged: dict[str, Any] = {"team": UNSET, "excluded": UNSET, "forget": None}
    assert named(control) == {"feed": "econ", "expert": "ann", **unchanged, **changes}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["expert", "econ", "ann"], "name what is to change"),
        (["expert", "econ", "ann", "--team", "lab", "--no-team"], "exclude each other"),
        (["expert", "econ", "ann", "--exclude", "--include"], "--exclude and --include exclude each other"),
        (["expert", "econ", "ann", "--forget", "--exclude", "--yes"], "--forget stands alone"),
        (["expert", "econ", "ann", "--rename", "zoe", "--exclude"], "--rename stands alone"),
        (["expert", "econ", "ann", "--rename", "ann"], "another id"),
        (["expert", "econ", "ann", "--rename", ""], "1 to 256 bytes"),
        (["expert", "econ", "eve", "--rename", "zoe"], "eve is no expert of feed econ"),
        (["expert", "sport", "ann", "--rename", "zoe"], "ann is no expert of feed sport"),
        (["expert", "econ", "ann", "--rename", "bob"], "bob was known in feed econ before"),
        (["expert", "econ", "ann", "--rename", "dora"], "dora was known in feed econ before"),
        (["expert", "econ", "ann", "--rename", "rob"], "rob was known in feed econ before"),
        (["expert", "econ", "x" * 300, "--exclude"], "expert_id"),
        (["expert", "econ/us", "ann", "--exclude"], "'econ/us' is no name of a feed: 1..100 letters"),
        (["expert", "econ", "ann", "--team", ""], "team"),
        (["reset", "no feed", "--yes"], "'no feed' is no name of a feed"),
        (["delete", "", "--yes"], "feed"),
    ],
)
def test_what_the_service_would_refuse_is_wrong_usage(
    capsys: Capture, written: list[Control], arguments: list[str], message: str
) -> None:
    ended = run(capsys, *arguments)

    assert (ended.code, ended.out, written) == (2, "", [])
    assert message in ended.err


@pytest.mark.parametrize(("expert", "new"), [("ann", "zoe"), ("dora", "zoe"), ("rob", "robert"), ("rob", "bob")])
def test_a_known_expert_gets_an_id_that_no_other_one_has(
    capsys: Capture, written: list[Control], published: dict[str, Weights], expert: str, new: str
) -> None:
    published["econ"] = weights(7, "ann", "rob")

    ended = run(capsys, "expert", "econ", expert, "--rename", new)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{expert} in feed econ: renamed {new} (control-events 3, offset 17).\n"
    (control,) = written
    assert isinstance(control, ExpertControl)
    assert (control.expert_id, control.rename) == (expert, new)


FINAL = [
    (["expert", "econ", "ann", "--forget"], "the feed is rebuilt without ann", "purge them"),
    (["reset", "econ"], "learning starts again with the next questions", "settings stay"),
    (["delete", "econ"], "its questions, experts, sums and corrections are deleted", "purge them"),
]


@pytest.mark.parametrize(("arguments", "happens", "stays"), FINAL)
def test_what_cannot_be_undone_says_what_happens_and_what_stays_and_asks(
    capsys: Capture,
    written: list[Control],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    happens: str,
    stays: str,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    declined = run(capsys, *arguments)
    nothing = list(written)
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    agreed = run(capsys, *arguments)

    assert (declined.code, nothing) == (130, [])
    assert "Nothing was written." in declined.err
    assert happens in declined.err
    assert stays in declined.err
    assert (agreed.code, len(written)) == (0, 1)


@pytest.mark.parametrize(("arguments", "happens", "_stays"), FINAL)
def test_scripts_say_yes_and_without_it_nothing_is_done(
    capsys: Capture,
    written: list[Control],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    happens: str,
    _stays: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    silent = run(capsys, *arguments)
    before = len(written)
    sure = run(capsys, *arguments, "--yes")

    assert (silent.code, before) == (2, 0)
    assert "--yes" in silent.err
    assert (sure.code, len(written)) == (0, 1)
    assert happens in sure.err


def test_controls_of_a_feed_ask_for_one_thing(capsys: Capture, written: list[Control]) -> None:
    run(capsys, "reset", "econ", "--yes")
    run(capsys, "delete", "econ", "--yes")

    assert written == [FeedControl(feed="econ", reset=True), FeedControl(feed="econ", delete=True)]


def test_an_expert_that_the_weights_do_not_list_is_noted_and_written_all_the_same(
    capsys: Capture, written: list[Control]
) -> None:
    ended = run(capsys, "expert", "econ", "anne", "--exclude")

    assert (ended.code, len(written)) == (0, 1)
    assert ended.err == (
        "Note: the newest weights of feed econ list no anne: misspelt, excluded, or nothing of it counts so far.\n"
    )


def test_a_feed_without_weights_is_noted_with_those_that_have_some(capsys: Capture, written: list[Control]) -> None:
    ended = run(capsys, "expert", "sport", "ann", "--exclude")

    assert (ended.code, len(written)) == (0, 1)
    assert ended.err == "Note: there are no weights of feed sport so far; feeds that have some: econ.\n"


def test_before_the_first_weights_there_is_nothing_to_note(
    capsys: Capture, written: list[Control], published: dict[str, Weights]
) -> None:
    published.clear()

    assert run(capsys, "expert", "econ", "ann", "--exclude").err == ""
    assert len(written) == 1


def test_whoever_may_not_read_weights_may_still_write_controls(
    capsys: Capture, written: list[Control], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Settings) -> dict[str, Weights]:
        raise NotAuthorisedError("No right to read weights.")

    monkeypatch.setattr(feed_records, "read_newest", refused)

    ended = run(capsys, "expert", "econ", "ann", "--exclude")

    assert (ended.code, len(written)) == (0, 1)
    assert "No right to read weights." in ended.err


def test_an_unreachable_broker_ends_the_command(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: Settings) -> dict[str, Weights]:
        raise BrokerUnavailableError("No broker answered.")

    monkeypatch.setattr(feed_records, "read_newest", nobody)

    assert run(capsys, "reset", "econ", "--yes") == (69, "", "stream-peer: No broker answered.\n")


@pytest.mark.parametrize("arguments", [(), ("--all", "3"), ("-1",), ("three",)])
def test_partitions_are_named_or_all_of_them(capsys: Capture, arguments: tuple[str, ...]) -> None:
    ended = run(capsys, "repair", *arguments)

    assert (ended.code, ended.out) == (2, "")


def test_without_a_signing_key_nothing_is_written(capsys: Capture) -> None:
    ended = run(capsys, "repair", "--all", "--bootstrap", "127.0.0.1:1")

    assert ended.code == 78
    assert "openssl rand -hex 32" in ended.err
