"""Topic names are what operators write in ACLs."""

import re

from stream_peer.events import topics


def test_names_are_lower_case_hyphenated_and_distinct() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in topics.ALL)
    assert len(set(topics.ALL)) == len(topics.ALL) == 9


def test_every_output_is_keyed_by_feed_or_question_or_is_a_dead_letter() -> None:
    assert set(topics.OUTPUTS) == {*topics.KEYED_BY_FEED, *topics.KEYED_BY_QUESTION, topics.DEAD_LETTERS}
