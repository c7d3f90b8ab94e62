"""What controls and settings do to the feeds of a partition."""

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import rebuild
from stream_peer.log.stage import Effects
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
    without_evaluations,
)

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}
WITHOUT_DAN = {name: p for name, p in FORECASTS.items() if name != "dan"}


def ids(effects: Effects, topic: str, key: str) -> list[str]:
    return [row["id"] for row in newest(effects.outputs, topic)[key]["experts"]]


def is_due(feed_stage: FeedStage) -> bool:
    return feed_stage.needs_rebuild


@pytest.mark.case("C22")
def test_an_excluded_expert_is_absent_from_then_on_and_comes_back_as_it_was() -> None:
    events: list[FeedLogRecord] = [round_of(f"q{k}", FORECASTS) for k in range(3)]
    _, before = folded(log_of(events))
    _, out = folded(log_of([*events, expert("dan", excluded=True), round_of("q3", FORECASTS), outcome("q0", 1)]))
    _, back = folded(log_of([*events, expert("dan", excluded=True), expert("dan", excluded=False)]))

    weights = newest(out.outputs, topics.WEIGHTS)["f"]["experts"]
    assert [row["id"] for row in weights] == ["ann", "bob", "cyd"]
    assert sum(row["mix"] for row in weights) == pytest.approx(1.0)
    assert sum(row["select"] for row in weights) == pytest.approx(1.0)
    assert ids(out, topics.PEER_LOSSES, "q3") == ids(out, topics.PEER_LOSSES, "q0") == ["ann", "bob", "cyd"]
    assert newest(out.outputs, topics.REFERENCE_ANSWERS)["q3"]["votes"] == 3
    one, two = (newest(effects.outputs, topics.WEIGHTS)["f"]["experts"] for effects in (before, back))
    assert one == two


def test_a_round_of_excluded_experts_alone_is_none() -> None:
    events: list[FeedLogRecord] = [
        round_of("q", {"dan": 0.4}),
        expert("dan", excluded=True),
        round_of("q", {"dan": 0.6}),
    ]
    feed_stage, effects = folded(log_of(events))

    assert newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]["state"] == "withdrawn"
    assert feed_stage.agrees()


def test_a_control_changes_what_it_names_and_leaves_the_rest() -> None:
    feed_stage, _ = folded(log_of([expert("ann", team="red"), expert("ann", excluded=True), expert("bob", team="red")]))
    roster = feed_stage.feeds.feed("f").roster
    assert (roster.teams, roster.excluded) == ({"ann": "red", "bob": "red"}, {"ann"})

    folded(log_of([expert("ann", team=None)], 3), feed_stage)
    assert (roster.teams, roster.excluded) == ({"bob": "red"}, {"ann"})


@pytest.mark.case("C22")
def test_after_forgetting_nothing_of_an_expert_is_left_as_if_it_had_never_been() -> None:
    events: list[FeedLogRecord] = [
        expert("dan", team="red"),
        *(round_of(f"q{k}", FORECASTS, boundary=k) for k in range(4)),
        round_of("alone", {"dan": 0.5}),
        outcome("q1", 0),
    ]
    changelog = Changelog()
    first, said = folded(log_of(events))
    changelog.take(first)
    log = log_of([*events, expert("dan", forget=True)])
    after, effects = folded(log[-1:], changelog.restored(), log[:-1])
    changelog.take(after)

    never: list[FeedLogRecord] = [
        msgspec.structs.replace(
            event, experts=sorted(WITHOUT_DAN), probabilities=[WITHOUT_DAN[e] for e in sorted(WITHOUT_DAN)]
        )
        if event.feed and getattr(event, "experts", None) == sorted(FORECASTS)
        else event
        for event in events[1:]
    ]
    other, _ = folded(log_of([e for e in never if getattr(e, "question_id", "") != "alone"]))
    assert after.agrees()
    learnt, as_if = (without_evaluations(one.feeds.feed("f").buckets.sums) for one in (after, other))
    assert learnt.equals(as_if)
    assert {key: ids(effects, topics.PEER_LOSSES, key) for key in ("q0", "q1", "q2", "q3")} == {
        f"q{k}": sorted(WITHOUT_DAN) for k in range(4)
    }
    assert newest(effects.outputs, topics.REFERENCE_ANSWERS)["alone"]["state"] == "withdrawn"
    everything = [*changelog.entries, *changelog.entries.values(), changelog.head or b""]
    assert any(b"dan" in (output.value or b"") for output in said.outputs)
    assert not [blob for blob in everything if b"dan" in blob]
    assert not [output for output in effects.outputs if b"dan" in (output.value or b"")]

    _, later = folded(log_of([round_of("q9", FORECASTS), expert("dan", excluded=False)], len(log)), after)
    assert ids(later, topics.PEER_LOSSES, "q9") == sorted(WITHOUT_DAN)
    assert later.counts["dead-letter", "forgotten"] == 1


def test_a_rebuild_that_is_not_finished_leaves_no_trace() -> None:
    log = log_of([*(round_of(f"q{k}", FORECASTS) for k in range(5)), settings({"defaults": {"loss": "log"}})])
    feed_stage, effects = stage(), Effects()
    for record in log:
        feed_stage.step(record, effects)
    assert is_due(feed_stage)
    half = rebuild(feed_stage, len(log) - 1)
    next(half)
    half.send(log[:3])
    half.close()

    carry_out_rebuilds(feed_stage, log)

    assert not is_due(feed_stage)
    assert feed_stage.agrees()
    assert feed_stage.views() == folded(log)[0].views()


def test_a_rebuild_of_one_feed_leaves_its_neighbours_alone() -> None:
    events: list[FeedLogRecord] = []
    for k in range(6):
        events += [round_of(f"q{k}", FORECASTS), round_of(f"q{k}", WITHOUT_DAN, feed="g")]
    document = {"feeds": {"f": {"loss": "log"}}}
    feed_stage, effects = folded(log_of([*events, settings(document), outcome("q1", 1), outcome("q1", 1, feed="g")]))
    only_g, _ = folded(log_of([*events, settings({"feeds": {"x": {}}}), outcome("q1", 1), outcome("q1", 1, feed="g")]))

    one, two = feed_stage.views()["g"], only_g.views()["g"]
    assert msgspec.structs.replace(one.weights, settings="") == msgspec.structs.replace(two.weights, settings="")
    assert feed_stage.views()["f"].weights.experts != only_g.views()["f"].weights.experts
    assert effects.counts["dead-letter", ""] == 0


def test_a_reset_begins_new_sums_and_revisions_go_on() -> None:
    events: list[FeedLogRecord] = [*(round_of(f"q{k}", FORECASTS) for k in range(4)), outcome("q0", 1)]
    changelog = Changelog()
    first, _ = folded(log_of(events))
    changelog.take(first)
    after, effects = folded(log_of([changed(reset=True)], 5), changelog.restored())
    changelog.take(after)

    assert newest(effects.outputs, topics.WEIGHTS)["f"]["experts"] == []
    assert newest(effects.outputs, topics.WEIGHTS)["f"]["revision"] == 5
    assert not [key for key in changelog.entries if key.startswith(b"e/")]

    more = log_of([round_of("new", FORECASTS), outcome("q0", 0)], 6)
    again, _ = folded(more, changelog.restored())
    fresh, _ = folded(log_of([round_of("new", FORECASTS), outcome("q0", 0)]))
    assert again.feeds.feed("f").buckets.sums.equals(fresh.feeds.feed("f").buckets.sums)
    assert again.agrees()


def test_a_deleted_feed_is_gone_with_every_key_of_its_outputs() -> None:
    events: list[FeedLogRecord] = [
        *(round_of(f"q{k}", FORECASTS) for k in range(3)),
        round_of("q0", FORECASTS, feed="g"),
    ]
    changelog = Changelog()
    first, _ = folded(log_of(events))
    changelog.take(first)
    after, effects = folded(log_of([changed(delete=True)], 4), changelog.restored())
    changelog.take(after)

    gone = {(output.topic, output.key) for output in effects.outputs if output.value is None}
    assert gone >= {(topics.WEIGHTS, b"f"), (topics.ERROR_RATES, b"f"), (topics.PEER_LOSSES, b"q2")}
    assert set(after.views()) == {"g"}
    assert not [key for key in changelog.entries if key.split(b"/")[1] == b"f"]
    again, _ = folded(log_of([round_of("q0", FORECASTS)], 5), changelog.restored())
    assert again.views()["f"].weights.questions == 1
    assert again.agrees()


def test_a_deleted_feed_leaves_no_part_of_when_it_was_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_peer.feeds.outputs.MAX_RECORD_BYTES", 3_000)
    crowd = [f"{'e' * 200}{k}" for k in range(20)]
    large: list[FeedLogRecord] = [round_of(f"q{k}", dict.fromkeys(crowd, 0.7)) for k in range(3)]
    small: list[FeedLogRecord] = [expert(name, excluded=True) for name in crowd[3:]]
    feed_stage, first = folded(log_of(large))
    _, second = folded(log_of(small, 3), feed_stage)
    _, effects = folded(log_of([changed(delete=True)], 20), feed_stage)

    written = {output.key for output in (*first.outputs, *second.outputs) if output.topic == topics.WEIGHTS}
    assert {b"f", b"f/2"} <= written
    assert written <= {o.key for o in effects.outputs if o.topic == topics.WEIGHTS and o.value is None}


def test_an_audit_finds_what_does_not_agree_and_a_rebuild_mends_it() -> None:
    log = log_of(
        [
            *(round_of(f"q{k}", FORECASTS) for k in range(80)),
            *(outcome(f"q{k}", 1 if k % 2 else 0) for k in range(0, 80, 3)),
        ]
    )
    feed_stage, _ = folded(log[:70])
    audit = feed_stage.audit()
    for k, _ in enumerate(audit):
        folded(log[70 + 2 * k : 72 + 2 * k], feed_stage)
    assert not is_due(feed_stage)
    folded(log[76:], feed_stage)
    whole = feed_stage.views()

    feed_stage.feeds.feed("f").buckets.sums.matrix[0, 0] += 1
    list(feed_stage.audit())
    assert is_due(feed_stage)

    carry_out_rebuilds(feed_stage, log)
    assert feed_stage.agrees()
    assert feed_stage.views() == whole


def test_lost_records_are_told_from_the_next_revision_on() -> None:
    feed_stage, _ = folded(log_of([round_of("q", FORECASTS)]))
    before = feed_stage.views()["f"]

    feed_stage.lost(7)
    assert feed_stage.views()["f"] == before
    _, effects = folded(log_of([round_of("q2", FORECASTS)], 9), feed_stage)

    assert any("7 records" in reason for reason in newest(effects.outputs, topics.WEIGHTS)["f"]["status_reasons"])


def test_an_erasure_corrects_the_records_of_the_questions_that_the_expert_had_answered() -> None:
    events = [round_of(f"q{k}", {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}) for k in range(4)]
    log = log_of([*events, round_of("other", {"bob": 0.1, "cyd": 0.2, "dan": 0.3}), expert("ann", forget=True)])
    made = stage()
    for record in log:
        made.step(record, Effects())

    corrections = carry_out_rebuilds(made, log)

    assert {output.key for output in corrections} == {b"q0", b"q1", b"q2", b"q3"}
    assert not [output for output in corrections if b"ann" in (output.value or b"")]


def test_a_control_that_names_the_forgotten_leaves_no_trace_of_them_in_dead_letters() -> None:
    _, effects = folded(log_of([round_of("q", FORECASTS), expert("dan", forget=True), expert("dan", team="red")]))

    (letter,) = [output for output in effects.outputs if output.topic == topics.DEAD_LETTERS]
    assert (letter.key, letter.value) == (None, None)
    assert b"dan" not in b"".join(value for _, value in letter.headers)


def test_a_forgotten_expert_has_no_place_in_a_feed_that_was_reset_later_when_all_is_folded_anew() -> None:
    log = log_of([round_of("q", FORECASTS), expert("dan", forget=True), changed(reset=True)])
    straight, _ = folded(log)
    anew = stage()
    anew.rebuild_all()

    carry_out_rebuilds(anew, log)

    assert anew.feeds.feed("f").roster.experts == straight.feeds.feed("f").roster.experts == ["ann", "bob", "cyd"]


def test_an_outcome_that_came_first_is_still_known_when_the_meaning_has_changed() -> None:
    other = settings({"defaults": {"memory": 5}})
    changelog = Changelog()
    straight, _ = folded(log := log_of([outcome("q", 1), other, round_of("q", FORECASTS)]))
    first, _ = folded(log[:2])
    changelog.take(first)
    restarted, _ = folded(log[2:], changelog.restored(), log[:2])

    assert straight.feeds.feed("f").ledger.entries["q"].evidence == 1
    assert restarted.feeds.feed("f").buckets.sums.equals(straight.feeds.feed("f").buckets.sums)


@pytest.mark.parametrize("change", [settings({"defaults": {"loss": "log"}}), expert("dan", forget=True)])
def test_a_feed_whose_log_was_purged_begins_anew_with_a_rebuild_and_revisions_go_on(change: FeedLogRecord) -> None:
    feed_stage, _ = folded(log_of([round_of("q", FORECASTS)], 7))
    feed_stage.rebase(100)
    (record,) = log_of([change], 8)
    feed_stage.step(record, Effects())

    carry_out_rebuilds(feed_stage, [record])

    feed = feed_stage.feeds.feed("f")
    assert not feed.ledger.entries
    assert (feed.path_state.revision, feed.path_state.base) == (8, 0)


def split_by_one(topic: str) -> tuple[dict[str, float], str]:
    """Forecasts of just so many experts that an output needs two parts, and the last of them."""
    escaped = "\x01" * 250
    ids = [f"{escaped}{number:04d}" for number in range(700)]
    whole, two = 300, 700
    while two - whole > 1:
        count = (whole + two) // 2
        _, effects = folded(log_of([round_of("q", dict.fromkeys(ids[:count], 0.25))]))
        parts = len([output for output in effects.outputs if output.topic == topic])
        whole, two = (count, two) if parts == 1 else (whole, count)
    return dict.fromkeys(ids[:two], 0.25), ids[two - 1]


@pytest.mark.parametrize("topic", [topics.WEIGHTS, topics.PEER_LOSSES])
def test_nothing_stays_of_the_forgotten_in_a_part_that_is_not_needed_without_them(topic: str) -> None:
    forecasts, last = split_by_one(topic)
    log = log_of([round_of("q", forecasts), expert(last, forget=True)])
    feed_stage, before = folded(log[:1])

    _, after = folded(log[1:], feed_stage, log[:1])

    compacted = {output.key: output.value for output in (*before.outputs, *after.outputs) if output.topic == topic}
    left = {key: value for key, value in compacted.items() if value is not None}
    assert len(compacted) == 3
    assert len(left) == 1
    assert all(f'{last[-4:]}"'.encode() not in value for value in left.values())
