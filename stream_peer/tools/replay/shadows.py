"""Shadows: the same events folded under other settings, how their mixed forecasts did, and the table that compares."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events import topics
from stream_peer.events.outputs import ShadowScores
from stream_peer.events.spelling import spelt
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.scored import scored_losses
from stream_peer.feeds.shadow_mixers import ShadowRecord
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects
from stream_peer.settings.feed.document import FeedSettingsBook, is_shadow_name, load_document
from stream_peer.settings.feed.model import ROUNDS
from stream_peer.tools.replay.files import FileLine, Progress
from stream_peer.tools.replay.history import head_of, rounded
from stream_peer.tools.replay.replay import ReplayOptions, historical, replay, with_settings
from stream_peer.tools.replay.run import ReplayProbe


class Judged(NamedTuple):
    """A resolved question: its weight, and ``losses_of_mix`` of its scored forecast."""

    weight: float
    losses: tuple[float, float, float]


class Prequential(ReplayProbe):
    """Follows the feed stage as it folds, and keeps what its forecasts lost on each question by the newest outcome.

    Attributes
    ----------
    questions : dict of (str, str) to Judged
        By feed and question.
    """

    def __init__(self) -> None:
        self.questions: dict[tuple[str, str], Judged] = {}

    def after_record(self, effects: Effects, stage: FeedStage) -> None:
        """Something was folded: look at every question of which something was said."""
        for output in effects.outputs:
            if output.topic == topics.MIXED_FORECASTS and output.value is not None:
                said = head_of(output.value)
                feed = stage.feeds.by_name.get(said.feed)
                judged = judge(feed.ledger.entries.get(said.question)) if feed else None
                if judged is None:
                    self.questions.pop((said.feed, said.question), None)
                else:
                    self.questions[said.feed, said.question] = judged


def judge(entry: Entry | None) -> Judged | None:
    """What the scored forecast of a question lost; None while there is no outcome, or no such forecast."""
    losses = None if entry is None else scored_losses(entry)
    return None if entry is None or losses is None else Judged(entry.weight, losses)


def shadow_scores(
    name: str, shadow: Mapping[tuple[str, str], Judged], live: Mapping[tuple[str, str], Judged]
) -> dict[str, ShadowScores]:
    """How a shadow did, by feed, on the questions that both folds have resolved."""
    totals: dict[str, list[list[float]]] = {feed: [] for feed, _ in live}
    for (feed, question), of_live in live.items():
        judged = shadow.get((feed, question))
        if judged is not None:
            pairs = zip(judged.losses, of_live.losses, strict=True)
            row = [1.0, *(loss for pair in pairs for loss in pair)]
            totals[feed].append([of_live.weight * value for value in row])
    records = {feed: np.add.reduce(np.array(rows).reshape(-1, 7)).tolist() for feed, rows in totals.items()}
    return {feed: ShadowRecord._make(record).scores(name) for feed, record in records.items()}


_NEXT_ASSIGNMENT = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_.-]*=)")


class ReplayShadow(NamedTuple):
    """A variant of the settings: its name, and assignments as for ``--set``."""

    name: str
    assignments: tuple[str, ...]

    @property
    def origin(self) -> str:
        """Where its settings come from, for faults."""
        return f"--shadow {self.name}"

    def names(self) -> list[str]:
        """The settings that are other ones."""
        return [assignment.partition("=")[0] for assignment in self.assignments]


def read_shadows(texts: Iterable[str]) -> list[ReplayShadow]:
    """Shadows as the command line names them.

    Raises
    ------
    SettingsError
        If one is none, or two have the same name.

    Examples
    --------
    >>> read_shadows(["log:loss=log", "wild:mixer.peer_rate=48,mixer.uniform_share=0.2"])[1]
    ReplayShadow(name='wild', assignments=('mixer.peer_rate=48', 'mixer.uniform_share=0.2'))
    """
    shadows: dict[str, ReplayShadow] = {}
    faults = []
    for text in texts:
        name, colon, assignments = text.partition(":")
        if not colon or not is_shadow_name(name) or "=" not in assignments:
            message = "write it as NAME:SETTING=VALUE[,SETTING=VALUE], the name of letters, digits, . - _"
            faults.append(SettingFault(text, "--shadow", message))
        elif name in shadows:
            faults.append(SettingFault(text, "--shadow", f"another shadow is named {name}"))
        else:
            shadows[name] = ReplayShadow(name, tuple(_NEXT_ASSIGNMENT.split(assignments)))
    if faults:
        raise SettingsError(faults)
    return list(shadows.values())


def documents(shadows: Iterable[ReplayShadow], document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings document of each shadow, by name.

    Raises
    ------
    SettingsError
        Names every fault of all of them, each with the shadow that it is of.
    """
    found, faults = {}, []
    for shadow in shadows:
        try:
            found[shadow.name] = with_settings(_alone(document), shadow.assignments, origin=shadow.origin)
            load_document(historical(found[shadow.name]), origin=shadow.origin, in_replay=True)
        except SettingsError as error:
            faults += error.faults
    if faults:
        raise SettingsError(faults)
    return found


def _alone(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without the shadows that it names: they are compared with the live mixers, not with each other."""
    feeds = document.get("feeds")
    if isinstance(feeds, Mapping):
        document = {**document, "feeds": {feed: _section_alone(own) for feed, own in feeds.items()}}
    return {**document, "defaults": _section_alone(document.get("defaults"))}


def _section_alone(section: object) -> object:
    if section is None:
        return {}
    return {n: v for n, v in section.items() if n != "shadows"} if isinstance(section, Mapping) else section


class ShadowRuns:
    """Shadows of a replay: the same lines folded again under the settings of each, once it has ended.

    Parameters
    ----------
    shadows : sequence of ReplayShadow
        Without any, nothing is kept and nothing is run.
    options : ReplayOptions
        Those of the live replay.

    Raises
    ------
    SettingsError
        Names every fault of the settings of all of them, each with the shadow that it is of.
    """

    def __init__(self, shadows: Sequence[ReplayShadow], options: ReplayOptions) -> None:
        self._options = options
        self._documents = documents(shadows, options.document)
        self._files: list[list[FileLine]] = []
        self._live = Prequential()

    def kept(self, files: Sequence[Iterable[FileLine]]) -> Sequence[Iterable[FileLine]]:
        """The lines of the live replay. They are kept if they must be read again: a pipe cannot be."""
        if not self._documents:
            return files
        self._files = [list(lines) for lines in files]
        return self._files

    def probes(self) -> list[ReplayProbe]:
        """Those of the live replay, to compare the shadows with it."""
        return [self._live] if self._documents else []

    def run(self, progress: Progress | None = None) -> dict[str, list[ShadowScores]]:
        """How the shadows did, by feed, in their order. ``progress`` is called for each replay, from 0."""
        found: dict[str, list[ShadowScores]] = {}
        for name, document in self._documents.items():
            shadow = Prequential()
            replay(self._files, self._options._replace(document=document), progress=progress, probes=[shadow])
            for feed, scores in shadow_scores(name, shadow.questions, self._live.questions).items():
                found.setdefault(feed, []).append(scores)
        return found


def books_of(shadows: Iterable[ReplayShadow], feed: str) -> dict[str, FeedSettingsBook]:
    """The settings of a feed's shadows before its log names any, by name; they lie over those that the log names.

    Raises
    ------
    SettingsError
        If settings cannot be read so, or are of the question stage, whose rounds are in the log already.
    """
    faults, found = [], {}
    for shadow in shadows:
        wrong = [fault for name in shadow.names() if (fault := _unfit_for_logs(name))]
        faults += [SettingFault(name, shadow.origin, message) for name, message in wrong]
        try:
            found[shadow.name] = _read(shadow, feed, {})
        except SettingsError as error:
            faults += error.faults
    if faults:
        raise SettingsError(faults)
    return found


def _unfit_for_logs(name: str) -> tuple[str, str] | None:
    """Why a setting cannot be another one where rounds are those of a log, of one feed."""
    outer = name.partition(".")[0]
    if outer in ("defaults", "feeds"):
        return name, "name the setting alone: it is of the feed whose log is folded"
    if outer in ROUNDS:
        return name, "changes which rounds there are, and the log has them already; replay files to compare it"
    return None


def _read(shadow: ReplayShadow, feed: str, document: Mapping[str, Any]) -> FeedSettingsBook:
    """A document with the shadow's settings over those that it has for the feed."""
    document = _alone(document)
    feeds = document.get("feeds") or {}
    own = with_settings({"defaults": feeds.get(feed) or {}}, shadow.assignments, origin=shadow.origin)["defaults"]
    laid_over = {**document, "feeds": {**feeds, feed: own}}
    book = load_document(laid_over, origin=shadow.origin, in_replay=True)
    return book._replace(reads=partial(_read, shadow, feed))


_NAME_WIDTH = 40
_WHAT = "stretched scored forecasts of the same resolved questions, beside the live ones; smaller is better"


def shadow_table(by_feed: Mapping[str, Sequence[ShadowScores]]) -> str:
    """A table for each feed, of the shadows that a replay folded beside it."""
    lines = [line for feed, shadows in sorted(by_feed.items()) for line in ("", f"feed {feed}", *shadow_lines(shadows))]
    return "\n".join(map(spelt, lines[1:])) if lines else "No feed was scored: there is nothing to compare."


def shadow_lines(shadows: Sequence[ShadowScores]) -> Iterator[str]:
    """The lines of a feed's table.

    Examples
    --------
    >>> scores = ShadowScores(
    ...     name="eager",
    ...     questions=40.0,
    ...     brier=0.15,
    ...     live_brier=0.16,
    ...     log_score=0.47,
    ...     live_log_score=0.48,
    ...     regret=-0.4,
    ...     mix_brier=0.16,
    ...     live_mix_brier=0.17,
    ... )
    >>> for line in list(shadow_lines([scores]))[1:]:
    ...     print(line)
        name     questions     Brier    (live)  log score    (live)    regret
        eager           40    0.1500  (0.1600)     0.4700  (0.4800)    -0.400
    """
    width = min(max(4, *(len(shadow.name) for shadow in shadows)), _NAME_WIDTH) if shadows else 0
    yield f"  shadows      {_WHAT}"
    head = f"{'questions':>9}  {'Brier':>8}  {'(live)':>8}  {'log score':>9}  {'(live)':>8}  {'regret':>8}"
    yield f"    {'name':<{width}}    {head}"
    for shadow in shadows:
        yield f"    {shadow.name:<{width}}    {_scores(shadow)}"


def _scores(shadow: ShadowScores) -> str:
    return (
        f"{rounded(shadow.questions):>9}  {_number(shadow.brier):>8}  {_beside(shadow.live_brier):>8}"
        f"  {_number(shadow.log_score):>9}  {_beside(shadow.live_log_score):>8}  {shadow.regret:>8.3f}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _beside(value: float | None) -> str:
    return "-" if value is None else f"({value:.4f})"
