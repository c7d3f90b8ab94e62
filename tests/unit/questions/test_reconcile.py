from stream_peer.log.stage import Effects, Warned
from stream_peer.questions.reconcile import warn
from stream_peer.questions.state import QuestionState
from stream_peer.settings.feed.model import FeedSettings


def test_what_is_wrong_with_times_is_counted_always_and_warned_of_once() -> None:
    question, effects = QuestionState("q", FeedSettings(), foreign=False), Effects()

    warn(question, "contradictory-times", None, effects)
    warn(question, "contradictory-times", "one", effects)
    warn(question, "missing-times", "two", effects)

    assert effects.warnings == [Warned("contradictory-times", "default", "q", "one")]
    assert effects.counts == {("contradictory-times", ""): 1, ("missing-times", ""): 1}
