"""Which of the records of a compacted topic are the newest weights of a feed."""

import json

import msgspec
import pytest

from stream_peer.events.outputs import Weights, encode_output
from stream_peer_client import UnknownSchemaError, outputs
from stream_peer_client.newest import Newest
from tests.feed_outputs import part, weights


def plain(record: outputs.Weights | Weights | None) -> object:
    return None if record is None else json.loads(encode_output(record))


def test_the_highest_revision_counts_and_a_repeated_one_changes_nothing() -> None:
    newest = Newest()

    found = [newest.add(b"econ", encode_output(weights(revision, "a"))) for revision in (3, 5, 4)]

    assert found == ["econ", "econ", None]
    assert plain(newest.weights("econ")) == plain(weights(5, "a"))
    assert newest.weights("sport") is None


def test_parts_are_joined_when_the_last_has_come() -> None:
    newest = Newest()
    newest.add(b"econ/1", part(weights(7), 1, 2, "c"))
    assert newest.weights("econ") is None

    newest.add(b"econ/0", part(weights(7), 0, 2, "a", "b"))

    assert plain(newest.weights("econ")) == plain(weights(7, "a", "b", "c"))


def test_until_all_tombstones_of_a_feed_have_come_no_older_record_of_it_counts() -> None:
    newest = Newest()
    newest.add(b"econ", encode_output(weights(3, "old")))
    newest.add(b"econ/0", part(weights(7), 0, 2, "a"))
    newest.add(b"econ/1", part(weights(7), 1, 2, "b"))

    for key in (b"econ/0", b"econ/1"):
        assert newest.add(key, None) == "econ"
        assert newest.weights("econ") is None
        assert "econ" in newest
    newest.add(b"econ", None)

    assert "econ" not in newest
    assert newest.add(b"econ", None) is None


def test_only_the_feeds_that_are_asked_for_are_kept() -> None:
    newest = Newest({"econ"})

    assert newest.add(b"sport", encode_output(weights(3, "a", feed="sport"))) is None
    assert "sport" not in newest


def test_words_and_fields_of_a_later_release_are_read() -> None:
    record = json.loads(encode_output(weights(7, "a")))
    record |= {"status": "asleep", "later": {"more": 1}}
    record["error_rate"]["status"] = "drowsy"
    newest = Newest()

    newest.add(b"econ", json.dumps(record).encode())

    found = newest.weights("econ")
    assert found is not None
    assert (found.status, found.error_rate.status) == ("asleep", "drowsy")


def test_a_later_major_version_is_refused_and_so_is_what_is_no_record() -> None:
    newest = Newest()

    with pytest.raises(UnknownSchemaError, match="weights of econ have schema 2, and this client reads 1"):
        newest.add(b"econ", encode_output(msgspec.structs.replace(weights(7), schema=2)))
    for value in (b"", b"[]", b'{"feed": "econ"}'):
        with pytest.raises(msgspec.DecodeError):
            newest.add(b"econ", value)
    assert "econ" not in newest
