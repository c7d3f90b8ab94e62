import io
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import pytest
from rich.console import Console

from stream_peer.cli.tail import weights_line, weights_table
from stream_peer.errors import BrokerUnavailableError
from stream_peer.events.outputs import Certificate, MixedGroup, PartForecast, Weights
from stream_peer.serve import feed_records
from stream_peer.settings.process import Settings
from stream_peer.tools.replay.history import by_mix
from tests.feed_outputs import expert, weights
from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]


def rendered(found: Weights, shown: int) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(weights_table(found, shown))
    return out.getvalue()


def with_mix(**mix: float) -> Weights:
    experts = [msgspec.structs.replace(expert(name), mix=share) for name, share in mix.items()]
    return msgspec.structs.replace(weights(7), experts=experts)


def holding(monkeypatch: pytest.MonkeyPatch, *found: Weights) -> None:
    def newest(_: Settings) -> dict[str, Weights]:
        return {w.feed: w for w in found}

    def follow(_: Settings, feed: str) -> Iterator[Weights]:
        for w in found:
            if w.feed == feed:
                yield w

    monkeypatch.setattr(feed_records, "read_newest", newest)
    monkeypatch.setattr(feed_records, "follow", follow)


def test_once_prints_the_newest_weights_as_json(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    holding(monkeypatch, weights(7, "a", "b"))

    ended = run(capsys, "tail", "econ", "--once")

    assert ended.code == 0
    assert msgspec.json.decode(ended.out, type=Weights) == weights(7, "a", "b")


def test_a_feed_without_weights_is_told_with_those_that_have_some(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    holding(monkeypatch, weights(7, feed="sport"))

    ended = run(capsys, "tail", "econ", "--once")

    assert ended.code == 2
    assert "no weights of feed 'econ' so far; feeds that have some: sport" in ended.err


def test_where_there_is_no_terminal_each_change_is_a_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    holding(monkeypatch, weights(7, "a"), weights(9, "b"))

    ended = run(capsys, "tail", "econ")

    assert [line.split(" revision ")[1].split()[0] for line in ended.out.splitlines()] == ["7", "9"]


def test_an_unreachable_broker_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def newest(_: Settings) -> dict[str, Weights]:
        raise BrokerUnavailableError("No broker answered.")

    monkeypatch.setattr(feed_records, "read_newest", newest)

    assert run(capsys, "tail", "econ", "--once") == (69, "", "stream-peer: No broker answered.\n")


def test_experts_stand_by_their_share_of_the_mix() -> None:
    assert [e.id for e in by_mix(with_mix(a=0.1, c=0.3, b=0.3))] == ["b", "c", "a"]


def test_the_table_shows_the_first_and_counts_the_rest() -> None:
    shown = rendered(with_mix(a=0.5, b=0.3, c=0.2), 1)

    assert "a " in shown
    assert "2 more" in shown
    assert "0.500" in shown


def test_names_of_experts_are_text_and_never_markup() -> None:
    assert "[red]x[/red]" in rendered(with_mix(**{"[red]x[/red]": 1.0}), 5)


def test_the_summary_names_status_certificate_and_leaders() -> None:
    found = msgspec.structs.replace(
        with_mix(a=0.7, b=0.3),
        status="warming-up",
        status_reasons=["a, b say the same", "12 of 200 questions"],
        certificate=Certificate(regret_at_most=41.25, confidence=0.95),
    )

    line = weights_line(found)

    assert "warming-up (a, b say the same; 12 of 200 questions)" in line
    assert "regret at most 41.2" in line
    assert line.endswith("mix a 0.700, b 0.300")


SAID: list[tuple[str, float | None, Literal[0, 1]]] = [("Ada", 0.25, 0), ("Bo", None, 1)]


def test_a_group_is_a_line_each_time_that_its_forecast_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    options = [PartForecast(name=n, mix=p, stretched=p, outcome=y) for n, p, y in SAID]
    common: dict[str, Any] = {"feed": "politics", "settings": "9f3c2a11", "at": "2026-03-08T00:00:00Z", "trust": "ok"}
    found = MixedGroup(**common, revision=7, group="chair", boundary=None, final=True, options=options)
    elsewhere = msgspec.structs.replace(found, feed="other")
    monkeypatch.setattr(feed_records, "follow_group", lambda *_: iter([elsewhere, found]))
    monkeypatch.setattr(feed_records, "read_group", lambda _, group: found if group == "chair" else None)

    lines = run(capsys, "tail", "politics", "--group", "chair")
    once = run(capsys, "tail", "politics", "--group", "chair", "--once")
    unknown = run(capsys, "tail", "politics", "--group", "cpi", "--once")

    assert lines.out == "2026-03-08T00:00:00Z revision 7 ok chair final mix Ada 0.250, Bo - (came true)\n"
    assert msgspec.json.decode(once.out, type=MixedGroup) == found
    assert unknown.code == 2
    assert "nothing is published of a group 'cpi'" in unknown.err
