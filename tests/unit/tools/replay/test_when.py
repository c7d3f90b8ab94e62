"""What would have been known when: weights along the way, changes of trust, and when the mix took the lead."""

from stream_peer.tools.replay.files import FileLine
from stream_peer.tools.replay.replay import replay
from stream_peer.tools.replay.when import SHOWN_MOMENTS, told_when
from tests.unit.tools.replay.file_lines import season


def test_moments_run_from_the_first_weights_to_the_last() -> None:
    result = replay([[FileLine("", line) for line in season()]])
    feed = result.history.feeds["econ"]

    lines = list(told_when(feed))

    assert lines[0] == "feed econ: what would have been known when"
    told = [line for line in lines if "; mix " in line]
    assert len(told) == SHOWN_MOMENTS
    assert told[0].split()[0] == feed.moments[0].at[:10]
    assert told[-1].split()[0] == feed.moments[-1].at[:10]
    assert "40 questions, 40 resolved" in told[-1]


def test_the_lead_of_the_mix_is_that_of_summed_scores_up_to_the_end() -> None:
    result = replay([[FileLine("", line) for line in season()]])
    feed = result.history.feeds["econ"]
    gains, total = [], 0.0
    for one in feed.resolved():
        total += (one.forecast.mean - one.outcome) ** 2 - (one.forecast.mix - one.outcome) ** 2
        gains.append(total)
    behind = max((number for number, gain in enumerate(gains, 1) if gain <= 0.0), default=0)

    last = list(told_when(feed))[-1]

    expected = f"number {behind + 1} of 40" if behind < 40 else "was not ahead of the plain mean after 40"
    assert expected in last
