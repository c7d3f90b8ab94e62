"""The question stage by its definitions: slow, obvious, and with nothing of the product but settings and hashes.

After every record it goes through everything that was ever said of every question and asks which rounds and which
outcome must have been told by now.
"""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stream_peer.events.partitioning import partition_of
from stream_peer.settings.feed.document import FeedSettingsBook, load_document
from stream_peer.settings.feed.model import FeedSettings

Content = tuple[bool, float, dict[str, float]]
REFUSED = -3
YEAR_2000 = 946_684_800_000
YEAR_1900 = -2_208_988_800_000


class Said(NamedTuple):
    """An event that counts, ``at`` when it was stated, ``time`` when it arrived, maybe ``after`` its resolution."""

    kind: str
    at: int
    body: dict[str, Any]
    time: int = 0
    after: bool = False


class Entry(NamedTuple):
    """A forecast that is used."""

    counts: int
    expert: str
    probability: float | None


Books = list[tuple[float, FeedSettingsBook]]


class Stub(NamedTuple):
    """What is left of a question."""

    feed: str
    truth: tuple[int, Any]
    told: tuple[str, Any] | None
    news: int


class Life:
    """What was said of one question since it was first heard of."""

    def __init__(self, settings: FeedSettings, books: Books) -> None:
        self.said: list[Said] = []
        self.books = books
        self.settings = settings
        self.touched = 0
        self.gone: list[int] = []
        self.terms: FeedSettings | None = None
        self.terms_at = 0
        self.would_have_been_at: int | None = None
        self.told: tuple[str, Any] | None = None
        self.shown_in: str | None = None
        self.boundaries: dict[int, str] = {}
        self.told_to = "default"

    def forget(self, forgotten: set[str], feed: str) -> None:
        """What some experts forecast was never said; that the question had a forecast then stays."""
        if not any(forgotten.intersection(one.body.get("forecasts", ())) for one in self.said):
            return
        self.gone.extend(entry.counts for entry in self.entries(feed))
        for place, one in enumerate(self.said):
            if forgotten.intersection(one.body.get("forecasts", ())):
                left = {expert: p for expert, p in one.body["forecasts"].items() if expert not in forgotten}
                self.said[place] = one._replace(body={**one.body, "forecasts": left})

    def counts(self, one: Said, feed: str) -> int:
        """From when a forecast counts, by the settings that its feed had when it arrived."""
        settings = max((since, place) for place, (since, _) in enumerate(self.books) if since <= one.time)[1]
        return _counts(one, self.books[settings][1].of(feed))

    def entries(self, feed: str, *more: Said) -> list[Entry]:
        """All forecasts that are used, in the order of arrival."""
        return [entry for entry in self.judged(feed, *more) if entry.counts >= 0]

    def judged(self, feed: str, *more: Said) -> list[Entry]:
        """All forecasts but the refused; of those that are not used ``counts`` says why: -1 repeated, -2 overtaken."""
        judged, before = [], list[tuple[str, int, float | None]]()
        for one in (one for one in (*self.said, *more) if "forecast" in one.kind):
            counts = self.counts(one, feed)
            if counts == REFUSED:
                continue
            for expert, p in _panel(one.body).items():
                unused = 0
                if counts != one.at:
                    newer = any(who == expert and at > one.at for who, at, _ in before)
                    unused = -1 if (expert, one.at, p) in before else -2 if newer else 0
                judged.append(Entry(unused or counts, expert, p))
            before.extend((expert, one.at, p) for expert, p in _panel(one.body).items())
        return judged

    def latest(self, kinds: Sequence[str], field: str, said: Sequence[Said]) -> Any:
        stating = [(one.at, place, one.body[field]) for place, one in enumerate(said) if _states(one, kinds, field)]
        return max(stating, key=lambda stated: stated[:2])[2] if stating else None

    def feed(self, *more: Said) -> str:
        said = [*self.said, *more]
        own = self.latest(["question"], "feed", said)
        return str(own or self.latest(["forecast", "forecasts", "resolution"], "feed", said) or "default")

    def resolution(self, *, provisional: bool) -> Said | None:
        """The one stated last, of those that are provisional or of the others."""
        kind = (one for one in enumerate(self.said) if one[1].kind == "resolution")
        stating = [(one.at, place) for place, one in kind if one.body.get("provisional", False) == provisional]
        return self.said[max(stating)[1]] if stating else None

    def provisional(self) -> Any:
        """The provisional outcome: there is none while there is an outcome, or if a resolution was stated later."""
        found, (at, verdict, _) = self.resolution(provisional=True), self.truth()
        return "open" if found is None or verdict != "open" or at > found.at else _verdict(found.body["outcome"])

    def truth(self) -> tuple[int, Any, int | None]:
        """(stated when, verdict, where it ends the question)."""
        truth = self.resolution(provisional=False)
        if truth is None:
            return 0, "open", None
        verdict = _verdict(truth.body["outcome"])
        cut = None if verdict == "open" else _moment(truth.body.get("closed_at", truth.body["at"]))
        return truth.at, verdict, cut

    def opens(self) -> int | None:
        stated = self.latest(["question"], "opens_at", self.said)
        forecasts = [*self.gone, *(entry.counts for entry in self.entries(self.feed()))]
        described = [one.at for one in self.said if one.kind == "question"]
        return _moment(stated) or min(forecasts, default=min(described, default=None))

    def close(self, terms: FeedSettings) -> int | None:
        opens = self.opens()
        longest = None if opens is None else opens + terms.max_open
        ends = [_moment(self.latest(["question"], "closes_at", self.said)), self.truth()[2], longest]
        return min((end for end in ends if end is not None), default=None)

    def standing(self, moment: int, lifetime: int | None) -> dict[str, float]:
        latest: dict[str, tuple[int, float | None]] = {}
        for entry in sorted(self.entries(self.feed()), key=lambda entry: entry.counts):
            if entry.counts <= moment:
                latest[entry.expert] = entry.counts, entry.probability
        return {
            expert: p
            for expert, (since, p) in latest.items()
            if p is not None and (lifetime is None or moment < since + lifetime)
        }

    def rounds(self, clock: int) -> dict[int, Content]:
        """Boundaries that are due, with who stands there."""
        terms = self.terms or self.settings
        opens, close = self.opens(), self.close(terms)
        if opens is None or close is None or close < opens:
            return {}
        boundaries = {close}
        if terms.round_every is not None:
            intervals = [terms.round_every * 2 ** (number // 8) for number in range(32)]
            boundaries |= {opens + sum(intervals[: number + 1]) for number in range(32)}
        moments = sorted({opens, *(entry.counts for entry in self.entries(self.feed()))})
        if terms.quorum is not None:
            crowds = (moment for moment in moments if moment >= opens)
            lifetime = terms.forecast_for
            boundaries.update([m for m in crowds if len(self.standing(m, lifetime)) >= terms.quorum][:1])
        weight = self.latest(["question"], "weight", self.said) or 1.0
        due = sorted(boundary for boundary in boundaries if boundary <= close and boundary + terms.grace <= clock)
        contents = {boundary: self.standing(boundary, terms.forecast_for) for boundary in due}
        return {boundary: (boundary == close, weight, who) for boundary, who in contents.items() if who}


class SlowPartition:
    """One partition of ``forecast-events``: ``rounds`` and outcomes as they were last told, and what is kept."""

    def __init__(self, partition: int, partitions: int) -> None:
        self.rounds: dict[tuple[str, str, int], Content] = {}
        self.outcomes: dict[tuple[str, str], Any] = {}
        self.provisional: dict[tuple[str, str], Any] = {}
        self.refused: list[str] = []
        self.forwarded = self.too_late = self.repeated = 0
        self.clock = 0
        self._home = partition, partitions
        self._book: FeedSettingsBook = load_document({})
        self._books: Books = [(-math.inf, self._book)]
        self._has_document = False
        self.noted = {"late": 0, "repeated": 0, "overtaken": 0}
        self._lives: dict[str, Life] = {}
        self.stubs: dict[str, Stub] = {}
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}
        self._forgotten: set[tuple[str, str]] = set()

    def add(self, time: int, value: bytes, source: Sequence[Any] | None) -> bool:
        """One record; whether it counts."""
        body = json.loads(value)
        if source is None and body["type"] in ("settings", "expert", "feed"):
            return self._refuse("unexpected-type")
        if source is not None and not self._is_new(source):
            self.repeated += 1
            return False
        counts = bool(getattr(self, f"_{body['type']}")(time, body, source))
        for question, life in sorted(self._lives.items()):
            self._tell(question, life, time)
        return counts

    # --- events ---

    def _forecast(self, time: int, body: dict[str, Any], source: Sequence[Any] | None) -> bool:
        life = self._life(body, source)
        return life is not None and self._hear_forecasts(life, time, body)

    def _forecasts(self, time: int, body: dict[str, Any], source: Sequence[Any] | None) -> bool:
        return self._forecast(time, body, source)

    def _hear_forecasts(self, life: Life, time: int, body: dict[str, Any]) -> bool:
        at = _moment(body["at"]) or 0
        feed = life.feed(Said(body["type"], at, body))
        panel = {expert: p for expert, p in _panel(body).items() if (feed, expert) not in self._forgotten}
        if len(panel) < len(_panel(body)):
            self.refused.append("forgotten")
            if not panel:
                return False
        settings = self._book.of(feed)
        if not _earliest(settings) <= at <= time + settings.horizon:
            return self._refuse("time-range")
        said = Said(body["type"], at, {**body, "forecasts": panel}, time, life.truth()[1] != "open")
        counts = life.counts(said, feed)
        if counts == REFUSED:
            return self._refuse("late")
        if counts != at:
            for entry in life.judged(feed, said)[-len(panel) :]:
                self.noted[{-1: "repeated", -2: "overtaken"}.get(entry.counts, "late")] += 1
        self._said(life, time, said, at)
        return True

    def _question(self, time: int, body: dict[str, Any], source: Sequence[Any] | None) -> bool:
        life = self._life(body, source)
        if life is None:
            return False
        settings = self._book.of(body["feed"]) if "feed" in body else life.settings
        times = [_moment(body[field]) or 0 for field in ("at", "opens_at", "closes_at") if field in body]
        if any(not _earliest(settings) <= moment <= time + settings.horizon for moment in times):
            return self._refuse("time-range")
        default = body.get("opens_at") if settings.history else None
        at = _moment(body.get("at", default)) or time
        self._said(life, time, Said("question", at, body), _moment(body.get("at")))
        return True

    def _resolution(self, time: int, body: dict[str, Any], source: Sequence[Any] | None) -> bool:
        at = _moment(body["at"]) or 0
        stub = self.stub(body["question_id"])
        if stub is not None:
            return self._resolve_stub(stub, time, body, source)
        life = self._life(body, source)
        if life is None:
            return False
        times = [at, _moment(body.get("closed_at")) or at]
        if any(not _earliest(life.settings) <= moment <= time + life.settings.horizon for moment in times):
            return self._refuse("time-range")
        self._said(life, time, Said("resolution", at, body), at)
        return True

    def _resolve_stub(self, stub: Stub, time: int, body: dict[str, Any], source: Sequence[Any] | None) -> bool:
        question, at = body["question_id"], _moment(body["at"]) or 0
        if self._goes_elsewhere(question, source):
            return False
        if body.get("provisional"):
            if stub.told is None or stub.told[1] == "open":
                self.provisional[stub.feed, question] = _verdict(body["outcome"])
                if body["outcome"] == "open":
                    del self.provisional[stub.feed, question]
            self._hear(at, time)
            return True
        truth = (at, _verdict(body["outcome"])) if at >= stub.truth[0] else stub.truth
        told = stub.told
        if truth[1] != (told[1] if told else "open"):
            told = (stub.feed, truth[1])
            self.outcomes[stub.feed, question] = truth[1]
        self._hear(at, time)
        self.stubs[question] = Stub(stub.feed, truth, told, max(self.clock, time))
        return True

    def _tick(self, time: int, body: dict[str, Any], _source: Sequence[Any] | None) -> bool:
        self._hear(_moment(body["now"]) or 0, time)
        return True

    def _settings(self, time: int, body: dict[str, Any], _source: Sequence[Any] | None) -> bool:
        for question in list(self.stubs):
            self.stub(question)  # what has ended has ended, whatever is said from here on
        self._book = load_document(body["document"])
        since = body.get("since", time) if self._has_document else -math.inf
        before = {question: life.entries(life.feed()) for question, life in self._lives.items()}
        self._books[:] = [*(one for one in self._books if one[0] < since), (since, self._book)]
        self._has_document = True
        for question, life in self._lives.items():
            life.settings = self._book.of(life.feed())
            others = before[question] != life.entries(life.feed()) or _terms(life.terms) != _terms(life.settings)
            if life.terms is not None and life.terms_at >= since and others:
                life.terms, life.would_have_been_at = None, life.terms_at
        return True

    def _expert(self, _time: int, body: dict[str, Any], _source: Sequence[Any] | None) -> bool:
        feed, expert = body["feed"], body["expert_id"]
        self._forgotten.add((feed, expert))
        for life in self._lives.values():
            if life.feed() == feed:
                life.forget({expert}, feed)
        kept = {key: _without(content, expert) if key[0] == feed else content for key, content in self.rounds.items()}
        self.rounds = {key: content for key, content in kept.items() if content[2]}
        return True

    def _feed(self, _time: int, body: dict[str, Any], _source: Sequence[Any] | None) -> bool:
        feed = body["feed"]
        self._lives = {question: life for question, life in self._lives.items() if life.feed() != feed}
        self.stubs = {question: stub for question, stub in self.stubs.items() if stub.feed != feed}
        self.rounds = {key: content for key, content in self.rounds.items() if key[0] != feed}
        self.outcomes = {key: outcome for key, outcome in self.outcomes.items() if key[0] != feed}
        self.provisional = {key: outcome for key, outcome in self.provisional.items() if key[0] != feed}
        return True

    # --- what they share ---

    def _is_new(self, source: Sequence[Any]) -> bool:
        place, position = (source[0], source[1]), (source[3], source[4])
        if position <= self._seen.get(place, (-1, -1)):
            return False
        self._seen[place] = position
        return True

    def _goes_elsewhere(self, question: str, source: Sequence[Any] | None) -> bool:
        partition, partitions = self._home
        goes = source is None and partition_of(question, partitions) != partition
        self.forwarded += goes
        return goes

    def _life(self, body: dict[str, Any], source: Sequence[Any] | None) -> Life | None:
        question = body["question_id"]
        if self._goes_elsewhere(question, source):
            return None
        if self.stub(question) is not None:
            self.too_late += 1
            return None
        return self._lives.get(question) or Life(self._book.of(body.get("feed", "default")), self._books)

    def stub(self, question: str) -> Stub | None:
        """What is left of a question, unless it has ended."""
        stub = self.stubs.get(question)
        if stub is None:
            return None
        settings = self._book.of(stub.feed)
        stays = settings.ledger_for if stub.told is None or stub.told[1] == "open" else settings.retract_for
        if stub.news + stays <= self.clock:
            del self.stubs[question]
            return None
        return stub

    def _said(self, life: Life, time: int, said: Said, stated: int | None) -> None:
        feed = life.feed(said)
        if feed != life.feed():
            life.forget({expert for of_feed, expert in self._forgotten if of_feed == feed}, feed)
        life.said.append(said)
        life.touched = time
        life.settings = self._book.of(life.feed())
        self._lives[said.body["question_id"]] = life
        if stated is not None:
            self._hear(stated, time)

    def _hear(self, stated: int, time: int) -> None:
        if stated <= time + self._book.default.skew:
            self.clock = max(self.clock, stated)

    def _refuse(self, reason: str) -> bool:
        self.refused.append(reason)
        return False

    def _tell(self, question: str, life: Life, time: int) -> None:
        """Everything that must have been told of a question by now, and whether its history goes."""
        feed = life.feed()
        if feed != life.told_to:
            life.told_to, life.terms = feed, None
        wanted = life.rounds(self.clock)
        for boundary, told_to in life.boundaries.items():
            self.rounds.pop((told_to, question, boundary), None)
        self.rounds.update({(feed, question, boundary): content for boundary, content in wanted.items()})
        life.boundaries = dict.fromkeys(wanted, feed)
        if wanted and life.terms is None:
            life.terms = life.settings
            life.terms_at = time if life.would_have_been_at is None else life.would_have_been_at
        life.would_have_been_at = None
        terms = life.terms or life.settings
        close = life.close(terms)
        self._tell_outcome(question, life, feed, has_closed=close is not None and close + terms.grace <= self.clock)
        if life.terms is not None:
            self._show_provisional(question, life, feed)
        closed = 0 if close is None else close + terms.grace
        if max(closed, life.touched) + life.settings.history_for <= self.clock:
            del self._lives[question]
            if life.terms is not None:
                self.stubs[question] = Stub(feed, life.truth()[:2], life.told, self.clock)

    def _tell_outcome(self, question: str, life: Life, feed: str, *, has_closed: bool) -> None:
        verdict = life.truth()[1]
        if life.told and life.told[1] != "open" and (life.told[0] != feed or verdict == "open"):
            life.told = life.told[0], "open"
            self.outcomes[life.told[0], question] = "open"
        if verdict != "open" and life.terms is not None and has_closed:
            life.told = feed, verdict
            self.outcomes[feed, question] = verdict

    def _show_provisional(self, question: str, life: Life, feed: str) -> None:
        """Show a provisional outcome where the question is now, and no longer where it was."""
        if life.shown_in is not None:
            self.provisional.pop((life.shown_in, question), None)
        verdict = life.provisional()
        life.shown_in = None if verdict == "open" else feed
        if life.shown_in is not None:
            self.provisional[feed, question] = verdict


def _counts(one: Said, settings: FeedSettings) -> int:
    counts = one.at if settings.backdate_limit is None else max(one.at, one.time - settings.backdate_limit)
    if one.after and not settings.history:
        counts = max(counts, one.time)
    return REFUSED if counts != one.at and settings.late_forecasts == "refuse" else counts


def _terms(settings: FeedSettings | None) -> Any:
    names = ("round_every", "quorum", "grace", "max_open", "forecast_for")
    return settings and [getattr(settings, name) for name in names]


def _states(one: Said, kinds: Sequence[str], field: str) -> bool:
    return one.kind in kinds and field in one.body


def _panel(body: dict[str, Any]) -> dict[str, float | None]:
    panel: dict[str, float | None] = body.get("forecasts") or {}
    return panel if "forecasts" in body else {body["expert_id"]: body["probability"]}


def _verdict(outcome: Any) -> Any:
    return "annulled" if outcome is None else outcome


def _earliest(settings: FeedSettings) -> int:
    return YEAR_1900 if settings.history else YEAR_2000


def _moment(value: str | None) -> int | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def _without(content: Content, expert: str) -> Content:
    final, weight, who = content
    return final, weight, {other: p for other, p in who.items() if other != expert}
