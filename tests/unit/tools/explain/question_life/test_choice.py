from stream_peer.tools.explain.question_life.choice import RevisionCounter
from stream_peer.tools.replay.replay import replay
from tests.unit.tools.explain.question_life.test_explainer import LIFE
from tests.unit.tools.replay.file_lines import lines, season


def test_revisions_are_counted_by_question() -> None:
    counter = RevisionCounter()

    replay([lines(LIFE)], write=counter.write)

    assert counter.ranked() == ["q"]
    assert counter.revisions["q"] == 5


def test_questions_with_equally_many_revisions_come_by_name() -> None:
    counter = RevisionCounter()

    replay([lines(season(questions=3))], write=counter.write)

    assert counter.ranked() == ["q000", "q001", "q002"]
