import msgspec
import pytest

from stream_peer.errors import ForeignSecretError, StateError
from stream_peer.events import topics
from stream_peer.events.feed_log import FeedLogRecord, Source, encode_feed_log
from stream_peer.feeds.fold import FeedFold
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.draws import fingerprint
from stream_peer.log.stage import Effects, LogRecord, PublishingStage, Stateful, Timed
from tests.feed_histories import (
    Changelog,
    expert,
    folded,
    log_of,
    newest,
    outcome,
    round_of,
    settings,
    stage,
    withdrawn,
)

FORECASTS = {"ann": 0.9, "bob": 0.7, "cyd": 0.2, "dan": 0.8}


def reasons(effects: Effects) -> list[str]:
    return [
        dict(output.headers)["stream-peer-reason"].decode()
        for output in effects.outputs
        if output.topic == topics.DEAD_LETTERS
    ]


def test_the_feed_stage_is_a_stage() -> None:
    fresh: PublishingStage[FeedFold] = stage()

    assert fresh.changed_feeds() == {}
    assert isinstance(fresh, Stateful)
    assert not isinstance(fresh, Timed)


def test_a_round_is_scored_and_published() -> None:
    _, effects = folded(log_of([round_of("q", FORECASTS)]))

    answer = newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]
    assert (answer["reference_answer"], answer["votes"], answer["yes"], answer["experts"]) == (1, 4, 3, 4)
    assert (answer["state"], answer["rounds"], answer["outcome"]) == ("scored", 1, None)
    losses = newest(effects.outputs, topics.PEER_LOSSES)["q"]["experts"]
    assert [expert["id"] for expert in losses] == sorted(FORECASTS)
    assert all(expert["outcome_loss"] is None for expert in losses)
    mixed = newest(effects.outputs, topics.MIXED_FORECASTS)["q"]
    assert mixed["mean"] == mixed["mix"] == pytest.approx(0.65)
    assert mixed["median"] == pytest.approx(0.75)
    assert mixed["selected"]["probability"] == FORECASTS[mixed["selected"]["expert"]]
    weights = newest(effects.outputs, topics.WEIGHTS)["f"]
    assert sum(expert["mix"] for expert in weights["experts"]) == pytest.approx(1.0)
    assert weights["status"] == "warming-up"
    assert newest(effects.outputs, topics.ERROR_RATES)["f"]["vote_rule"] == "half"


def test_facts_do_not_change_when_the_outcome_comes() -> None:
    events: list[FeedLogRecord] = [round_of(f"q{k}", FORECASTS) for k in range(5)]
    _, before = folded(log_of(events))
    _, after = folded(log_of([*events, outcome("q4", 0)]))

    one, two = (newest(effects.outputs, topics.MIXED_FORECASTS)["q4"] for effects in (before, after))
    for name in ("mix", "stretched", "mean", "selected", "boundary"):
        assert one[name] == two[name]
    assert (two["outcome"], two["state"]) == (0, "resolved")
    losses = newest(after.outputs, topics.PEER_LOSSES)["q4"]["experts"]
    assert losses[0]["outcome_loss"] == pytest.approx(0.81)


def test_a_question_is_weighed_without_its_own_evidence() -> None:
    first = round_of("q", FORECASTS)
    again = round_of("q", {**FORECASTS, "ann": 0.1})
    others: list[FeedLogRecord] = [round_of(f"q{k}", {"ann": 0.9, "bob": 0.7, "cyd": 0.1}) for k in range(5)]

    once, _ = folded(log_of([*others, again]))
    twice, _ = folded(log_of([*others, first, again]))

    def columns(of: FeedStage) -> dict[str, tuple[float, ...]]:
        return {e.id: (e.mix, e.select, e.questions) for e in of.views()["f"].weights.experts}

    assert columns(once) == columns(twice)


def test_annulled_retracted_and_withdrawn_questions_say_so() -> None:
    events = [
        round_of("q", FORECASTS),
        outcome("q", 1),
        outcome("q", "annulled"),
        outcome("q", "open"),
        withdrawn("q"),
    ]
    states = []
    for length in range(1, 6):
        _, effects = folded(log_of(events[:length]))
        states.append(newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]["state"])

    assert states == ["scored", "resolved", "annulled", "scored", "withdrawn"]
    gone = newest(effects.outputs, topics.MIXED_FORECASTS)["q"]
    assert gone["mix"] is None
    assert gone["boundary"] is None
    assert newest(effects.outputs, topics.WEIGHTS)["f"]["experts"] == []


def test_a_low_evidence_round_is_published_but_teaches_nothing() -> None:
    _, effects = folded(log_of([round_of("q", {"ann": 0.9, "bob": 0.5, "cyd": 0.5})]))

    assert newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]["state"] == "low-evidence"
    weights = newest(effects.outputs, topics.WEIGHTS)["f"]
    assert (weights["experts"], weights["questions"], weights["status"]) == ([], 0.0, "low-evidence")
    assert weights["certificate"] is None


def test_a_repeated_source_does_nothing() -> None:
    record = log_of([round_of("q", FORECASTS)])[0]
    feed_stage, effects = folded([record])
    before = feed_stage.snapshot().head
    repeated = Effects()

    feed_stage.step(record._replace(offset=7), repeated)

    assert repeated.outputs == []
    assert repeated.counts["duplicate", ""] == 1
    assert feed_stage.snapshot().head == before
    assert len(effects.outputs) == len((*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION))


def test_a_recreated_source_topic_is_news() -> None:
    event = round_of("q", FORECASTS)
    first = LogRecord(0, 0, b"f", encode_feed_log(msgspec.structs.replace(event, src=Source("t", 0, 0, 900, 0))))
    later = LogRecord(1, 0, b"f", encode_feed_log(msgspec.structs.replace(event, src=Source("t", 0, 1, 0, 0))))

    _, effects = folded([first, later])

    assert effects.counts["round", "counts"] == 2


def test_feeds_do_not_influence_each_other() -> None:
    mine: list[FeedLogRecord] = [round_of(f"q{k}", FORECASTS) for k in range(9)]
    theirs = [round_of(f"q{k}", {"ann": 0.1, "bob": 0.2, "cyd": 0.3}, feed="g") for k in range(9)]

    alone, _ = folded(log_of(mine))
    beside, _ = folded(log_of([event for pair in zip(mine, theirs, strict=True) for event in pair]))

    assert beside.views()["f"].weights.experts == alone.views()["f"].weights.experts
    assert set(beside.views()) == {"f", "g"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"not json", "not-json"),
        (b"\xff\xfe", "not-json"),
        (b'{"type":"nonsense"}', "wrong-type"),
        (encode_feed_log(msgspec.structs.replace(round_of("q", {"a": 0.1}), probabilities=[])), "wrong-type"),
        (
            encode_feed_log(msgspec.structs.replace(round_of("q", {"a": 0.1, "b": 0.2}), experts=["b", "a"])),
            "wrong-type",
        ),
        (encode_feed_log(round_of("q", {"a": 1.1})), "probability-range"),
        (encode_feed_log(msgspec.structs.replace(round_of("q", {"a": 0.1}), part=1, parts=2)), "wrong-type"),
        (encode_feed_log(settings({"defaults": {"nonsense": 1}})), "settings-invalid"),
    ],
)
def test_what_cannot_be_used_goes_to_dead_letters_and_changes_nothing(value: bytes | None, reason: str) -> None:
    feed_stage, effects = folded([LogRecord(0, 5, b"f", value)])

    assert reasons(effects) == [reason]
    assert effects.counts["dead-letter", reason] == 1
    assert feed_stage.views() == {}
    assert feed_stage.clock == 5


def test_reading_settings_apply_from_their_place_on() -> None:
    document = {"feeds": {"f": {"mixer": {"uniform_share": 1.0}, "stretch": False}}}
    events: list[FeedLogRecord] = [round_of(f"q{k}", {"ann": 0.9, "bob": 0.7, "cyd": 0.1}) for k in range(9)]

    _, before = folded(log_of(events))
    _, after = folded(log_of([*events, settings(document)]))

    one, two = (newest(effects.outputs, topics.WEIGHTS)["f"] for effects in (before, after))
    assert len({expert["mix"] for expert in one["experts"]}) > 1
    assert [expert["mix"] for expert in two["experts"]] == pytest.approx([1 / 3] * 3)
    assert one["settings"] != two["settings"]
    assert two["revision"] == 9


def test_a_change_of_meaning_folds_feeds_with_rounds_anew_and_the_rest_goes_on() -> None:
    document = {"defaults": {"min_experts": 2, "publish_every": "5s"}}
    pair = {"ann": 0.9, "bob": 0.7}
    events = [
        round_of("q", FORECASTS),
        round_of("q1", pair),
        settings(document),
        round_of("q2", pair),
        round_of("q", pair, feed="g"),
    ]
    feed_stage, effects = folded(log_of(events))
    from_the_start, other = folded(log_of(events), stage(min_experts=2))

    assert reasons(effects) == []
    assert feed_stage.agrees()
    states = newest(effects.outputs, topics.REFERENCE_ANSWERS)
    assert states["q1"]["state"] == "low-evidence"  # what was said stays said
    assert states["q2"]["state"] == states["q"]["state"] == "scored"
    assert feed_stage.views() == from_the_start.views()
    assert newest(effects.outputs, topics.WEIGHTS) == newest(other.outputs, topics.WEIGHTS)
    assert feed_stage.views()["f"].weights.questions == 3


def test_small_moves_wait_for_the_snapshot() -> None:
    feed_stage, effects = stage(), Effects()
    log = log_of([round_of("q", FORECASTS), settings({"defaults": {"publish_every": "2s"}})])
    feed_stage.step(log[0], effects)
    feed_stage.publish(effects, ["f", "unknown"])
    first = len(effects.outputs)
    feed_stage.step(log[1], effects)

    feed_stage.publish(effects, ["f"])
    assert len(effects.outputs) == first
    assert list(feed_stage.changed_feeds()) == ["f"]
    feed_stage.publish(effects)

    assert [output.topic for output in effects.outputs[first:]] == [*topics.KEYED_BY_FEED]
    assert feed_stage.changed_feeds() == {}


def test_rounds_in_parts_are_scored_with_the_last_one() -> None:
    whole = round_of("q", FORECASTS)
    parts = [
        msgspec.structs.replace(whole, experts=experts, probabilities=[FORECASTS[e] for e in experts], part=k, parts=2)
        for k, experts in enumerate((["ann", "bob"], ["cyd", "dan"]))
    ]
    log = log_of(parts)
    changelog, feed_stage, effects = Changelog(), stage(), Effects()
    feed_stage.step(log[0], effects)
    changelog.take(feed_stage)
    assert effects.outputs == []

    again, effects = folded(log[1:], changelog.restored())
    changelog.take(again)

    assert newest(effects.outputs, topics.REFERENCE_ANSWERS)["q"]["experts"] == 4
    assert not [key for key in changelog.entries if key.startswith(b"p")]


def test_huge_rounds_fit_into_records() -> None:
    forecasts = {f"expert-{k:05d}": (k % 97) / 96 for k in range(20_000)}
    changelog = Changelog()
    feed_stage, effects = folded(log_of([round_of("q", forecasts), round_of("q", forecasts, boundary=2)]))

    changelog.take(feed_stage)

    assert max(len(output.value or b"") for output in effects.outputs) <= topics.MAX_RECORD_BYTES
    assert max(map(len, changelog.entries.values())) <= 390_000
    parts = [record for key, record in newest(effects.outputs, topics.WEIGHTS).items() if key.startswith("f/")]
    assert [(record["part"], record["parts"]) for record in parts] == [(k, len(parts)) for k in range(len(parts))]
    assert [e["id"] for record in parts for e in record["experts"]] == sorted(forecasts)
    assert changelog.restored().views() == feed_stage.views()


@pytest.mark.parametrize("schema", [1, 3, 99])
def test_state_of_another_layout_is_folded_anew_and_what_it_left_goes(schema: int) -> None:
    log = log_of([round_of("q", FORECASTS), outcome("q", 1), settings({"defaults": {"confidence": 0.9}})])
    first, _ = folded(log)
    other = stage()

    other.load(msgspec.msgpack.encode([schema, "of another layout"]), {b"e/f/q": b"?", b"z/of/old": b"?"})
    assert other.needs_rebuild
    again, later = folded(log_of([round_of("q2", FORECASTS)], 3), other, log)

    assert again.agrees()
    assert not newest(later.outputs, topics.REFERENCE_ANSWERS).keys() & {"q"}
    rows = again.snapshot().entries
    assert (rows[b"z/of/old"], rows[b"e/f/q"] is None) == (None, False)
    whole, _ = folded(log_of([round_of("q2", FORECASTS)], 3), first)
    assert again.views() == whole.views()


def test_state_that_is_none_is_refused_in_a_sentence() -> None:
    with pytest.raises(StateError, match="cannot be read"):
        stage().load(b"\xc1", {})


def test_a_stage_without_state_begins_with_nothing() -> None:
    empty = stage()
    empty.load(None, {})

    assert (empty.clock, empty.needs_rebuild) == (0, False)
    assert empty.revision == -1


def test_state_made_with_another_secret_is_refused() -> None:
    feed_stage, _ = folded(log_of([round_of("q", FORECASTS)]))
    changelog = Changelog()
    changelog.take(feed_stage)
    head, entries = changelog.head, changelog.entries

    for secret in (b"", b"other"):
        with pytest.raises(ForeignSecretError, match="secret_file must be the same for all workers") as raised:
            FeedStage(topic="feed-log", partition=0, secret=secret).load(head, entries)
        assert isinstance(raised.value, StateError)
        assert raised.value.exit_code == 78
        assert fingerprint(b"secret") in str(raised.value)
        assert fingerprint(secret) in str(raised.value)
    stage().load(head, entries)


def test_no_secret_is_a_secret_too() -> None:
    without = FeedStage(topic="feed-log", partition=0)

    FeedStage(topic="feed-log", partition=1).load(without.snapshot().head, {})

    with pytest.raises(ForeignSecretError, match=fingerprint(b"")):
        stage().load(without.snapshot().head, {})


def test_a_snapshot_holds_what_changed_and_no_more() -> None:
    feed_stage, effects = folded(log_of([round_of("q1", FORECASTS), round_of("q2", FORECASTS)]))
    first = set(feed_stage.snapshot().entries)

    feed_stage.step(log_of([outcome("q2", 1)], 2)[0], effects)

    assert first == {b"e/f/q1", b"e/f/q2", b"f/f"}
    assert set(feed_stage.snapshot().entries) == {b"e/f/q2"}


@pytest.mark.parametrize("restart", [5, 25, 35])
def test_the_vote_rule_in_force_and_own_medians_survive_a_restart(restart: int) -> None:
    """Nobody goes above one half, so that after 200 votes those above their own median count."""
    log = log_of(
        round_of(f"q{k}", {f"e{e}": 0.05 + 0.04 * ((7 * k + 3 * e) % 9) for e in range(9)}, boundary=k)
        for k in range(40)
    )
    whole, at_once = folded(log)
    first, before = folded(log[:restart])
    changelog = Changelog()
    changelog.take(first)

    again, after = folded(log[restart:], changelog.restored())

    assert again.agrees()
    assert again.views() == whole.views()
    assert again.views()["f"].error_rates.vote_rule == "own-median"
    asked = newest([*before.outputs, *after.outputs], topics.PEER_LOSSES)
    assert asked == newest(at_once.outputs, topics.PEER_LOSSES)
    answers = {name: {e["reference_answer"] for e in record["experts"]} for name, record in asked.items()}
    assert set().union(*(answers[f"q{k}"] for k in range(20))) == {0}
    assert set().union(*(answers[f"q{k}"] for k in range(25, 40))) == {0, 1}


def in_another_log(records: list[LogRecord]) -> list[LogRecord]:
    """The records at the offsets from 0 on."""
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


@pytest.mark.case("C29")
def test_a_log_made_anew_goes_on_with_what_is_known_above_all_revisions() -> None:
    before, after = log_of([round_of("q1", FORECASTS), outcome("q1", 1)]), log_of([round_of("q2", FORECASTS)], 2)
    whole, _ = folded([*before, *after])
    changelog = Changelog()
    changelog.take(folded(before)[0])
    restored = changelog.restored()

    assert restored.revision == 1
    restored.begin_topic(5, 100, keep=True)
    anew = in_another_log([*after, *log_of([round_of("q3", FORECASTS, feed="g")], 3)])
    gone_on, effects = folded(anew, restored)

    weights = newest(effects.outputs, topics.WEIGHTS)
    assert (weights["f"]["revision"], weights["g"]["revision"]) == (100, 101)
    same = whole.views()["f"].weights
    assert gone_on.views()["f"].weights == msgspec.structs.replace(same, revision=100)
    assert gone_on.agrees()


@pytest.mark.case("C29")
def test_a_log_made_anew_that_begins_without_what_was_known_keeps_settings_and_who_was_forgotten() -> None:
    told = [round_of("q1", FORECASTS), settings({"defaults": {"confidence": 0.9}}), expert("dan", forget=True)]
    changelog = Changelog()
    changelog.take(folded(log_of(told))[0])
    restored = changelog.restored()

    restored.begin_topic(5, 100, keep=False)
    gone_on, effects = folded(in_another_log(log_of([round_of("q2", FORECASTS)])), restored)
    changelog.take(gone_on)
    again = changelog.restored()

    (answer,) = newest(effects.outputs, topics.REFERENCE_ANSWERS).values()
    assert (answer["question"], answer["experts"], answer["revision"]) == ("q2", 3, 100)
    assert not any(b"q1" in key for key in changelog.entries)
    assert again.document == {"defaults": {"confidence": 0.9}}
    assert again.views() == gone_on.views()


@pytest.mark.case("C29")
def test_state_that_was_lost_is_folded_anew_from_its_log_and_nothing_is_said_of_questions_again() -> None:
    log = log_of([round_of("q1", FORECASTS), outcome("q1", 1)])
    lost = stage()

    lost.rebuild_all()
    found, effects = folded([], lost, log)

    assert found.views() == folded(log)[0].views()
    assert not newest(effects.outputs, topics.REFERENCE_ANSWERS)


@pytest.mark.parametrize("change", [expert("dan", forget=True), settings({"defaults": {"loss": "log"}})])
@pytest.mark.parametrize("schema", [1, None])
def test_state_that_is_made_again_ends_as_it_was_and_says_nothing_again_though_feeds_were_rebuilt_on_the_way(
    schema: int | None, change: FeedLogRecord
) -> None:
    log = log_of([round_of("q1", FORECASTS), outcome("q1", 1), change, round_of("q2", FORECASTS, final=True)])
    made = stage()

    if schema is None:
        made.rebuild_all()
    else:
        made.load(msgspec.msgpack.encode([schema, "of another layout"]), {b"e/f/q1": b"?"})
    found, effects = folded([], made, log)

    whole, (one, other) = folded(log)[0], (Changelog(), Changelog())
    one.take(found)
    other.take(whole)
    assert (one.head, one.entries) == (other.head, other.entries)
    assert found.views() == whole.views()
    assert not newest(effects.outputs, topics.REFERENCE_ANSWERS)


@pytest.mark.case("C29")
def test_a_feed_stage_knows_which_control_events_it_met() -> None:
    controls = [
        msgspec.structs.replace(settings({}), src=Source("control-events", partition, generation, 0, 0))
        for partition, generation in ((0, 7), (3, 0))
    ]
    log = [LogRecord(offset, 0, b"settings", encode_feed_log(event)) for offset, event in enumerate(controls)]

    met, _ = folded(log)

    assert met.generations() == {0: 7, 3: 0}
