import msgspec

from stream_peer.adapters.weights_view import NewestWeights
from stream_peer.events.outputs import ErrorRateSummary, MixerShares, WeightedExpert, Weights, encode_output


def weights(revision: int, *experts: str, feed: str = "econ") -> Weights:
    return Weights(
        feed=feed,
        revision=revision,
        at="2026-03-01T12:00:00Z",
        settings="9f3c",
        status="ok",
        status_reasons=[],
        questions=1,
        resolved=0,
        error_rate=ErrorRateSummary(zero=0.1, one=0.2, low=0.1, high=0.2, status="ok", measured=None),
        mixer=MixerShares(mean=1, peer=0, truth_slow=0, truth_fast=0),
        stretch=0,
        select_shrink=0.0,
        certificate=None,
        experts=[expert(name) for name in experts],
    )


def expert(name: str) -> WeightedExpert:
    return WeightedExpert(
        id=name, mix=0.5, select=0.5, questions=1, coverage=1, peer_loss=0.1, outcome_loss=None, resolved=0, team=None
    )


def part(whole: Weights, number: int, parts: int, *experts: str) -> bytes:
    return encode_output(msgspec.structs.replace(whole, part=number, parts=parts, experts=[expert(e) for e in experts]))


def test_the_highest_revision_of_each_feed_counts() -> None:
    newest = NewestWeights()

    assert newest.add(encode_output(weights(3, "a"))) == weights(3, "a")
    assert newest.add(encode_output(weights(2, "b"))) is None
    assert newest.add(encode_output(weights(1, "c", feed="sport"))) == weights(1, "c", feed="sport")
    assert {feed: w.revision for feed, w in newest.by_feed.items()} == {"econ": 3, "sport": 1}


def test_parts_count_when_the_last_is_there() -> None:
    newest = NewestWeights()
    newest.add(encode_output(weights(3, "a")))

    assert newest.add(part(weights(5), 1, 2, "c")) is None
    assert newest.by_feed["econ"].revision == 3
    assert newest.add(part(weights(5), 0, 2, "b")) == weights(5, "b", "c")


def test_parts_of_an_older_revision_are_not_mixed_with_newer_ones() -> None:
    newest = NewestWeights()

    newest.add(part(weights(5), 0, 2, "old"))

    assert newest.add(part(weights(6), 1, 2, "d")) is None
    assert newest.add(part(weights(6), 0, 2, "c")) == weights(6, "c", "d")


def test_a_tombstone_removes_the_feed() -> None:
    newest = NewestWeights()
    newest.add(encode_output(weights(3, "a")), b"econ")

    newest.add(None, b"econ")

    assert newest.by_feed == {}


def test_tombstones_of_parts_end_a_feed_in_parts_and_no_other_tombstone_does() -> None:
    newest = NewestWeights()
    newest.add(part(weights(5), 0, 2, "a"), b"econ/0")
    newest.add(part(weights(5), 1, 2, "b"), b"econ/1")

    newest.add(None, b"econ")
    newest.add(None, b"econ/2")
    kept = list(newest.by_feed)
    newest.add(None, b"econ/1")

    assert (kept, newest.by_feed) == (["econ"], {})
