"""What can be asked about an expert's weight, and the answer, the same for the command line and for HTTP."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from stream_peer.events.near_names import did_you_mean
from stream_peer.events.times import from_iso, to_milliseconds
from stream_peer.tools.explain.weight_account import Account, Bound
from stream_peer.tools.explain.weight_story.records import WeightKind, WeightStory
from stream_peer.tools.explain.weight_story.story import story_of

_REVISION = re.compile(r"[0-9]{1,18}")


class WeightRequest(NamedTuple):
    """Whose weight, which, between which ends, and how many questions to tell one by one."""

    feed: str
    expert: str
    since: Bound | None = None
    until: Bound | None = None
    weight: WeightKind = "mix"
    questions: int = 10

    def account(self) -> Account:
        """An account to be kept."""
        return Account(self.expert, self.since, self.until)

    @property
    def is_backwards(self) -> bool:
        """Whether it ends before it begins."""
        since, until = self.since, self.until
        if since is None or until is None:
            return False
        ends = (since.at, until.at), (since.revision, until.revision)
        return any(one is not None and other is not None and one > other for one, other in ends)


class LogRead(NamedTuple):
    """What a log holds: whether the feed is in it, its experts, and which feeds there are.

    ``start`` is the offset of the first record that it still has.
    """

    exists: bool
    experts: Sequence[str]
    feeds: Iterable[str]
    start: int = 0


class NotThere(NamedTuple):
    """What of a request there is not, and the sentence that says so."""

    what: Literal["feed", "expert", "span"]
    message: str


def bound_of(text: str) -> Bound:
    """A revision, or a moment; without a zone it is UTC.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> bound_of("4711"), bound_of("2026-03-01")
    (Bound(at=None, revision=4711), Bound(at=1772323200000, revision=None))
    """
    if _REVISION.fullmatch(text):
        return Bound(revision=int(text))
    try:
        at = from_iso(text)
    except (ValueError, OverflowError):
        msg = f"{text!r} is neither a moment, such as 2026-03-01 or 2026-03-01T12:00Z, nor a revision, such as 4711"
        raise ValueError(msg) from None
    return Bound(at=to_milliseconds(at))


def answer(request: WeightRequest, account: Account, log: LogRead) -> WeightStory | NotThere:
    """The story of an account that was kept for a request, or what there is not."""
    if not log.exists:
        return NotThere("feed", f"there is no feed {request.feed!r}{did_you_mean(request.feed, log.feeds)}")
    if account.is_backwards:
        return NotThere("span", "the span would begin after its end")
    found = story_of(account, request.feed, request.weight, request.questions)
    if found is not None:
        return found if not log.start else _of_part(found, log.start)
    if request.expert not in log.experts:
        meant = did_you_mean(request.expert, log.experts)
        return NotThere("expert", f"there is no expert {request.expert!r} in feed {request.feed}{meant}")
    return NotThere(
        "expert",
        f"{request.expert} had no weight in feed {request.feed} by then: none of its questions counted, or it is "
        "excluded",
    )


def _of_part(story: WeightStory, start: int) -> WeightStory:
    """A story that says that the log was read from somewhere in the middle."""
    note = (
        f"The feed's log begins at offset {start}: earlier records are deleted, so these weights may differ "
        "from those that were published."
    )
    return msgspec.structs.replace(story, sentences=[*story.sentences, note])
