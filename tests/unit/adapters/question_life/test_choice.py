from stream_peer.adapters.question_life.choice import RevisionCounter
from stream_peer.adapters.replay import replay
from tests.unit.adapters.file_lines import lines, season
from tests.unit.adapters.question_life.test_explainer import LIFE


def test_revisions_are_counted_by_question() -> None:
    counter = RevisionCounter()

    replay([lines(LIFE)], write=counter.write)

    assert counter.ranked() == ["q"]
    assert counter.revisions["q"] == 5


def test_questions_with_equally_many_revisions_come_by_name() -> None:
    counter = RevisionCounter()

    replay([lines(season(questions=3))], write=counter.write)

    assert counter.ranked() == ["q000", "q001", "q002"]
