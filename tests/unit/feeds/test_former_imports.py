"""Feeds that an earlier release moved with their state go on as they did, and come out of their log as they did."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.events.times import to_iso
from stream_peer.feeds.facts import unpack
from stream_peer.feeds.former_imports import EntryLine, FeedLine, Line
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, LogRecord
from tests.feed_histories import (
    Changelog,
    carry_out_rebuilds,
    changed,
    expert,
    folded,
    log_of,
    newest,
    outcome,
    round_of,
    settings,
    stage,
)
from tests.feed_transfers import FORECASTS, PAST, published
from tests.former_release import LATER, former_import, former_lines

FUTURE: list[FeedLogRecord] = [
    round_of("q1", {"ann": 0.2, "eve": 0.6, "bob": 0.4}, boundary=9),
    expert("dan", excluded=False),
    *(round_of(f"n{k}", {**FORECASTS, "eve": 0.1 * k}, boundary=k % 3) for k in range(6)),
    outcome("q4", 1),
    outcome("q1", "open"),
    outcome("n2", 0),
]
HERE = 40
"""Where the feed-log of the other cluster has got to."""


def past(events: Sequence[FeedLogRecord] = PAST, **defaults: Any) -> tuple[FeedStage, list[LogRecord]]:
    log = log_of(events)
    return folded(log, stage(**defaults))[0], log


def exported(events: Sequence[FeedLogRecord] = PAST, **defaults: Any) -> list[Line]:
    feed_stage, log = past(events, **defaults)
    return former_lines(feed_stage, log[-1].offset)


def moved(lines: Sequence[Line], **defaults: object) -> tuple[FeedStage, Effects, list[LogRecord]]:
    """A stage that has taken up an import, what came out, and its log."""
    log = former_import(lines, first=HERE)
    feed_stage, effects = folded(log, stage(**defaults))
    return feed_stage, effects, log


def going_on(records: Sequence[LogRecord], behind: Sequence[LogRecord]) -> list[LogRecord]:
    """The same records, behind others."""
    return [record._replace(offset=behind[-1].offset + 1 + n) for n, record in enumerate(records)]


def refusals(effects: Effects) -> dict[str, int]:
    return {detail: count for (kind, detail), count in effects.counts.items() if kind == "dead-letter"}


@pytest.mark.parametrize(
    "defaults",
    [{}, {"vote_rule": "own-median"}, {"preset": "paper"}, {"memory": 16}, {"loss": "log"}, {"ledger_max": 3}],
    ids=str,
)
def test_an_imported_feed_goes_on_with_the_bytes_of_the_one_that_was_exported(defaults: dict[str, Any]) -> None:
    there, log = past(**defaults)
    here, effects, imported = moved(former_lines(there, log[-1].offset), **defaults)
    more = log_of(FUTURE, len(log))
    recent = [one.feeds.feed("f").recent.read(9).votes.tolist() for one in (there, here)]

    _, goes_on_there = folded(more, there)
    _, goes_on_here = folded(going_on(more, imported), here)

    assert refusals(effects) == {}
    assert published(goes_on_here.outputs) == published(goes_on_there.outputs)
    assert len(published(goes_on_there.outputs)) >= 3 * 6
    assert here.agrees()
    assert recent[0] == recent[1] != []


def test_the_weights_that_were_exported_are_published_at_once_with_their_revision() -> None:
    there, log = past()
    before = folded(log)[1]

    _, effects, _ = moved(former_lines(there, log[-1].offset))

    assert newest(effects.outputs, topics.WEIGHTS)["f"] == newest(before.outputs, topics.WEIGHTS)["f"]
    assert newest(effects.outputs, topics.ERROR_RATES)["f"] == newest(before.outputs, topics.ERROR_RATES)["f"]


def test_what_a_replay_made_of_the_future_is_published_as_of_now() -> None:
    there, log = past()
    there.feeds.feed("f").path_state.at = LATER + 1

    _, effects, imported = moved(former_lines(there, log[-1].offset))

    weights = newest(effects.outputs, topics.WEIGHTS)["f"]
    assert weights["at"] == to_iso(imported[-1].timestamp)
    assert {output.timestamp for output in effects.outputs} == {LATER}


def test_revisions_lie_above_all_that_the_feed_has_published_here() -> None:
    lines = exported()
    known = log_of([expert("zoe", team="blue")], 700)
    here, before = folded(known)
    log = former_import(lines, first=701)

    _, effects = folded(log, here)
    _, later = folded(going_on(log_of(FUTURE, 800), log), here)

    revisions = [newest(some.outputs, topics.WEIGHTS)["f"]["revision"] for some in (before, effects, later)]
    assert revisions == sorted(set(revisions))
    assert here.feeds.feed("f").roster.teams == {"bob": "red", "zoe": "blue"}


def test_a_large_feed_comes_in_parts_and_survives_a_restart_between_any_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.log.transfers.PART_BYTES", 500)
    lines = exported()
    log = former_import(lines, first=HERE)
    whole = folded(log)[0]
    changelog, effects = Changelog(), Effects()
    restarted = stage()

    for record in log:
        restarted.step(record, effects)
        changelog.take(restarted)
        restarted = changelog.restored()

    assert len(log) > 3
    assert not effects.counts["dead-letter", "import-refused"]
    assert not [key for key in changelog.entries if key.startswith(b"i")]
    later = going_on(log_of(FUTURE), log)
    assert published(folded(later, restarted)[1].outputs) == published(folded(later, whole)[1].outputs)


@pytest.mark.parametrize("fault", ["missing", "swapped", "harmed", "other"])
def test_an_import_whose_parts_are_not_what_was_sent_is_refused_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("stream_peer.log.transfers.PART_BYTES", 500)
    log = former_import(exported(), first=HERE)
    other = former_import(exported(), first=HERE, import_id="other")
    faulty = {
        "missing": [*log[:1], *log[2:]],
        "swapped": [log[0], log[2], log[1], *log[3:]],
        "harmed": [log[0], harmed(log[1]), *log[2:]],
        "other": [log[0], other[1], *log[2:]],
    }[fault]

    feed_stage, effects = folded(faulty)

    assert refusals(effects).keys() == {"import-refused"}
    assert not feed_stage.feeds.by_name.get("f") or not feed_stage.feeds.feed("f").has_rounds()
    assert refusals(folded(former_import(exported(), first=90, import_id="again"), feed_stage)[1]) == {}
    assert feed_stage.feeds.feed("f").has_rounds()


def harmed(record: LogRecord) -> LogRecord:
    event = msgspec.json.decode(record.value or b"")
    event["data"] = "AAAA" + event["data"][4:]
    return record._replace(value=msgspec.json.encode(event))


def test_a_part_that_was_sent_twice_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.log.transfers.PART_BYTES", 500)
    log = former_import(exported(), first=HERE)
    again = msgspec.json.decode(log[1].value or b"")
    again["src"][3] += 1000
    rest = [with_later_source(record, 2000) for record in log[2:]]

    feed_stage, effects = folded([*log[:2], log[1]._replace(value=msgspec.json.encode(again)), *rest])

    assert refusals(effects) == {}
    assert feed_stage.feeds.feed("f").has_rounds()


def with_later_source(record: LogRecord, by: int) -> LogRecord:
    event = msgspec.json.decode(record.value or b"")
    event["src"][3] += by
    return record._replace(value=msgspec.json.encode(event))


def test_a_feed_that_knows_questions_takes_no_other_up() -> None:
    here, _ = folded(log_of([round_of("own", FORECASTS)]))

    _, effects = folded(former_import(exported(), first=HERE), here)

    assert refusals(effects) == {"import-refused": 1}
    assert set(here.feeds.feed("f").ledger.entries) == {"own"}


def test_after_a_reset_it_does() -> None:
    here, _ = folded(log_of([round_of("own", FORECASTS), changed(reset=True)]))

    _, effects = folded(former_import(exported(), first=HERE), here)

    assert refusals(effects) == {}
    assert set(here.feeds.feed("f").ledger.entries) == {f"q{k}" for k in range(8)}


@pytest.mark.parametrize(("field", "value"), [("feed_schema", 6), ("feed", "another")])
def test_what_another_release_or_feed_wrote_is_refused(field: str, value: Any) -> None:
    header, *rest = exported()
    lines = [msgspec.structs.replace(header, **{field: value}), *rest]

    log = former_import(lines)
    named = [with_feed(record) for record in log]
    feed_stage, effects = folded(named)

    assert refusals(effects) == {"import-refused": 1}
    assert not feed_stage.feeds.feed("f").has_rounds()


def with_first_entry(lines: list[Line], **changes: Any) -> list[Line]:
    entry = next(line for line in lines if isinstance(line, EntryLine))
    return [msgspec.structs.replace(line, **changes) if line is entry else line for line in lines]


def with_feed_line(lines: list[Line], **changes: Any) -> list[Line]:
    return [msgspec.structs.replace(line, **changes) if isinstance(line, FeedLine) else line for line in lines]


def with_selected(packed: bytes, place: int) -> bytes:
    return msgspec.structs.replace(unpack(packed), selected=place).pack()


def rounds_of(lines: list[Line]) -> list[bytes]:
    return next(line for line in lines if isinstance(line, EntryLine)).rounds


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: with_first_entry(lines, rounds=[b"short"]),
        lambda lines: with_first_entry(lines, rounds=[rounds_of(lines)[0][:-1]]),
        lambda lines: with_first_entry(lines, rounds=[rounds_of(lines)[0] + b"more"]),
        lambda lines: with_first_entry(lines, first_final=b"short"),
        lambda lines: with_first_entry(lines, first_final=rounds_of(lines)[0][:-1]),
        lambda lines: with_first_entry(lines, first_final=with_selected(rounds_of(lines)[0], 99)),
        lambda lines: with_first_entry(lines, rounds=[with_selected(rounds_of(lines)[0], -2)]),
        lambda lines: with_first_entry(lines, ordinal=-(2**62)),
        lambda lines: with_feed_line(lines, experts=["ann"]),
        lambda lines: with_feed_line(lines, settled=b"garbage"),
        lambda lines: with_feed_line(lines, meaning={"loss": "cubic"}),
        lambda lines: with_feed_line(lines, meaning={"memory": "long"}),
        lambda lines: [line for line in lines if not isinstance(line, FeedLine)],
    ],
)
def test_a_file_that_somebody_has_changed_is_refused_and_stops_nothing(
    change: Callable[[list[Line]], list[Line]],
) -> None:
    log = former_import(change(exported()))

    feed_stage, effects = folded([*log, *going_on(log_of([round_of("own", FORECASTS)]), log)])

    assert refusals(effects) == {"import-refused": 1}
    assert set(feed_stage.feeds.feed("f").ledger.entries) == {"own"}
    assert feed_stage.agrees()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.case("C22")
def test_who_asks_to_be_forgotten_while_a_feed_comes_is_not_in_it(
    monkeypatch: pytest.MonkeyPatch, *, restarts: bool
) -> None:
    monkeypatch.setattr("stream_peer.log.transfers.PART_BYTES", 500)
    log = former_import(exported(), first=HERE)
    control = log_of([expert("ann", forget=True)], 5)
    here, _ = folded([*log[:2], *going_on(control, log[:2])])
    if restarts:
        changelog = Changelog()
        changelog.take(here)
        here = changelog.restored()

    _, effects = folded(going_on(log[2:], log), here)

    assert refusals(effects) == {}
    feed = here.feeds.feed("f")
    assert feed.roster.experts == ["bob", "cyd", "dan"]
    assert len(feed.ledger.entries) == 8
    assert here.agrees()


def with_feed(record: LogRecord) -> LogRecord:
    event = msgspec.json.decode(record.value or b"")
    return record._replace(value=msgspec.json.encode({**event, "feed": "f"}))


def test_folding_the_log_anew_from_its_start_gives_the_same() -> None:
    lines = exported()
    log = [*former_import(lines)]
    log += going_on(log_of([*FUTURE, settings({"defaults": {"stretch": False}})]), log)
    kept, _ = folded(log)
    changelog = Changelog()
    changelog.take(kept)
    head = msgspec.msgpack.decode(changelog.head or b"")
    changelog.head = msgspec.msgpack.encode([0, *head[1:]])

    anew = changelog.restored()
    carry_out_rebuilds(anew, log)

    assert_same_feed(anew, kept)


def assert_same_feed(one: FeedStage, other: FeedStage) -> None:
    feed, twin = one.feeds.feed("f"), other.feeds.feed("f")
    assert feed.encode() == twin.encode()
    assert feed.path_state == twin.path_state
    assert {name: entry.encode() for name, entry in feed.ledger.entries.items()} == {
        name: entry.encode() for name, entry in twin.ledger.entries.items()
    }
    assert one.agrees()


def test_another_meaning_is_refused_for_an_imported_feed_and_all_else_of_the_settings_counts() -> None:
    here, _, log = moved(exported())
    document = {"defaults": {"loss": "log", "publish_every": "9s"}}

    _, effects = folded(going_on(log_of([settings(document)]), log), here, log)

    feed = here.feeds.feed("f")
    assert refusals(effects) == {"imported-meaning": 1}
    assert (feed.settings.loss, feed.settings.publish_every) == ("squared", 9000)
    assert here.agrees()


def test_the_meaning_of_an_imported_feed_is_its_own_whatever_was_applied_here_before() -> None:
    here, _, _ = moved(exported(), loss="log")

    assert here.feeds.feed("f").settings.loss == "squared"
    assert here.agrees()


def test_a_reset_feed_follows_the_settings_again() -> None:
    here, _, log = moved(exported())
    more = going_on(log_of([settings({"defaults": {"loss": "log"}}), changed(reset=True)]), log)

    folded(more, here, log)

    assert here.feeds.feed("f").settings.loss == "log"


@pytest.mark.case("C22")
def test_nothing_is_left_of_an_imported_expert_that_asked_to_be_forgotten() -> None:
    here, _, log = moved(exported(ledger_max=5), ledger_max=5)
    more = going_on(log_of([expert("ann", forget=True), round_of("n", FORECASTS), outcome("q7", 1)]), log)

    _, effects = folded(more, here, log)
    changelog = Changelog()
    changelog.take(here)

    feed = here.feeds.feed("f")
    assert "ann" not in feed.roster.experts
    assert not [key for key, value in changelog.entries.items() if b"ann" in value]
    weights = newest(effects.outputs, topics.WEIGHTS)["f"]
    assert [row["id"] for row in weights["experts"]] == ["bob", "cyd"]
    assert here.agrees()


@pytest.mark.case("C22")
def test_of_an_imported_expert_that_asked_to_be_forgotten_no_scored_forecast_keeps_what_it_said() -> None:
    there, log = past([round_of("q", FORECASTS, final=True), outcome("q", 1), round_of("q", {"bob": 0.6, "cyd": 0.5})])
    here, _, imported = moved(former_lines(there, log[-1].offset))
    before, first = here.views()["f"].brier, here.feeds.feed("f").ledger.entries["q"].first_final
    assert first == there.feeds.feed("f").ledger.entries["q"].first_final

    _, effects = folded(going_on(log_of([expert("ann", forget=True)]), imported), here, imported)

    kept = here.feeds.feed("f").ledger.entries["q"].first_final
    assert kept is not None
    facts = unpack(kept)
    assert [here.feeds.feed("f").roster.experts[place] for place in facts.experts] == ["bob", "cyd", "dan"]
    assert here.views()["f"].brier == before
    assert newest(effects.outputs, topics.MIXED_FORECASTS)["q"]["scored"]["revision"] == 0
    assert here.agrees()


@pytest.mark.case("C22")
def test_what_was_said_of_the_others_stays_theirs_when_somebody_is_forgotten() -> None:
    rounds = {"q1": FORECASTS, "q2": {"bob": 0.1, "dan": 0.2}, "q3": {"ann": 0.5}, "q4": {"ann": 0.4, "cyd": 0.3}}
    there, log = past([round_of(name, forecasts) for name, forecasts in rounds.items()])
    here, _, imported = moved(former_lines(there, log[-1].offset))
    before = {name: said_of(here, name) for name in rounds}

    folded(going_on(log_of([expert("ann", forget=True)]), imported), here, imported)

    for name, said in before.items():
        assert said_of(here, name) == {who: facts for who, facts in said.items() if who != "ann"}
    assert here.agrees()


def said_of(feed_stage: FeedStage, question_id: str) -> dict[str, tuple[float, ...]]:
    """Forecast, selection weight, reference answer and tie of each expert of a question's round."""
    feed = feed_stage.feeds.feed("f")
    facts = feed.ledger.entries[question_id].latest()
    if facts is None:
        return {}
    names = [feed.roster.experts[place] for place in facts.experts]
    rows = zip(facts.forecasts, facts.select, facts.answers, facts.ties, strict=True)
    return dict(zip(names, (tuple(map(float, row)) for row in rows), strict=True))


@pytest.mark.case("C22")
def test_who_was_forgotten_is_refused_at_the_other_end_too() -> None:
    there, log = past()
    more = log_of([expert("cyd", forget=True)], len(log))
    folded(more, there, log)

    here, _, imported = moved(former_lines(there, more[-1].offset))
    _, effects = folded(going_on(log_of([round_of("n", {"cyd": 0.3, "ann": 0.4})]), imported), here)

    assert "cyd" not in here.feeds.feed("f").roster.experts
    losses = newest(effects.outputs, topics.PEER_LOSSES)["n"]["experts"]
    assert [row["id"] for row in losses] == ["ann"]


@pytest.mark.case("C22")
def test_who_was_forgotten_here_does_not_come_back_with_an_import() -> None:
    here, _ = folded(log_of([expert("ann", forget=True)]))
    folded(former_import(exported(), first=HERE), here)

    feed = here.feeds.feed("f")
    assert feed.roster.experts == ["bob", "cyd", "dan"]
    assert here.agrees()


def test_the_parts_of_a_round_that_had_come_are_taken_along() -> None:
    whole = round_of("big", FORECASTS)
    first, last = (
        msgspec.structs.replace(
            whole, experts=whole.experts[a:b], probabilities=whole.probabilities[a:b], part=n, parts=2
        )
        for n, (a, b) in enumerate([(0, 2), (2, 4)])
    )
    there, log = past([*PAST, first])

    here, _, imported = moved(former_lines(there, log[-1].offset))
    _, effects = folded(going_on(log_of([last]), imported), here)

    assert len(newest(effects.outputs, topics.PEER_LOSSES)["big"]["experts"]) == len(FORECASTS) - 1  # dan is excluded


@pytest.mark.parametrize("anew", ["by a round", "by an import"])
def test_revisions_of_a_feed_that_comes_anew_lie_above_those_of_the_one_that_was_deleted(anew: str) -> None:
    there, past_log = past([*PAST, *FUTURE])
    lines = former_lines(there, past_log[-1].offset)
    imported = former_import(lines)
    log = [*imported, *log_of([round_of("q1", FORECASTS), changed(delete=True)], len(imported))]
    again = former_import(lines, first=len(log), import_id="again")
    later = again if anew == "by an import" else log_of([round_of("q1", FORECASTS)], len(log))
    changelog, (here, effects) = Changelog(), folded(log)
    highest = max(revision for _, _, revision in published(effects.outputs))

    changelog.take(here)
    restored, came = folded(going_on(later, log), changelog.restored())

    assert here.revision == highest
    assert all(revision > highest for _, _, revision in published(came.outputs))
    assert restored.revision > highest
