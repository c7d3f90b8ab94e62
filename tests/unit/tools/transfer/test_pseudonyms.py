import re

import pytest

from stream_peer.errors import FeedTransferError
from stream_peer.tools.transfer.reshape import Pseudonyms

KEY = b"a key of some length"


def test_a_pseudonym_is_the_same_for_the_same_id_and_key_and_tells_kinds_apart() -> None:
    names, again = Pseudonyms(KEY), Pseudonyms(KEY)

    assert names.expert("ann") == again.expert("ann")
    assert re.fullmatch("e-[0-9a-f]{24}", names.expert("ann"))
    assert len({names.expert("ann"), names.expert("bob"), names.team("ann"), names.of("question", "ann")}) == 4


def test_another_key_gives_other_pseudonyms_and_another_fingerprint() -> None:
    names, others = Pseudonyms(KEY), Pseudonyms(KEY + b".")

    assert names.expert("ann") != others.expert("ann")
    assert names.fingerprint != others.fingerprint


def test_question_ids_stay_unless_asked_for() -> None:
    assert Pseudonyms(KEY).question("q1") == "q1"
    assert Pseudonyms(KEY, questions=True).question("q1").startswith("q-")


def test_a_key_of_any_greater_length_counts_wholly() -> None:
    long = bytes(range(200))

    assert Pseudonyms(long).expert("ann") != Pseudonyms(long[:-1]).expert("ann")


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(FeedTransferError, match="at least 16"):
        Pseudonyms(b"secret")
