"""What can be asked about an expert's weight, and the answer, the same for the command line and for HTTP."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from stream_peer.events.near_names import did_you_mean
from stream_peer.serve.explanation import ExplainFault, ExplainRequest, WeightExplanation
from stream_peer.tools.explain.weight_account import Account
from stream_peer.tools.explain.weight_story.story import story_of


def account_of(request: ExplainRequest) -> Account:
    """An account to be kept for a request."""
    return Account(request.expert, request.since, request.until)


class LogRead(NamedTuple):
    """What a log holds: whether the feed is in it, its experts, and which feeds there are.

    ``start`` is the offset of the first record that it still has.
    """

    exists: bool
    experts: Sequence[str]
    feeds: Iterable[str]
    start: int = 0


def answer(request: ExplainRequest, account: Account, log: LogRead) -> WeightExplanation | ExplainFault:
    """The story of an account that was kept for a request, or what there is not."""
    if not log.exists:
        return ExplainFault("feed", f"there is no feed {request.feed!r}{did_you_mean(request.feed, log.feeds)}")
    if account.is_backwards:
        return ExplainFault("span", "the span would begin after its end")
    found = story_of(account, request.feed, request.weight, request.questions)
    if found is not None:
        return found if not log.start else _of_part(found, log.start)
    if request.expert not in log.experts:
        meant = did_you_mean(request.expert, log.experts)
        return ExplainFault("expert", f"there is no expert {request.expert!r} in feed {request.feed}{meant}")
    return ExplainFault(
        "expert",
        f"{request.expert} had no weight in feed {request.feed} by then: none of its questions counted, or it is "
        "excluded",
    )


def _of_part(story: WeightExplanation, start: int) -> WeightExplanation:
    """A story that says that the log was read from somewhere in the middle."""
    note = (
        f"The feed's log begins at offset {start}: earlier records are deleted, so these weights may differ "
        "from those that were published."
    )
    return msgspec.structs.replace(story, sentences=[*story.sentences, note])
