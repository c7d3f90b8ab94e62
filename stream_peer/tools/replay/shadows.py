"""``replay --shadow``: the same events under other settings as well, each a fold of its own, compared with the live."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.events.outputs import ShadowScores
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.stage import Effects, Record
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.settings.feed.document import FeedSettingsBook, load_document
from stream_peer.settings.feed.model import ROUNDS
from stream_peer.settings.feed.shadows import is_shadow_name
from stream_peer.tools.replay.jsonl import FileLine
from stream_peer.tools.replay.prequential import Prequential, shadow_scores
from stream_peer.tools.replay.replay import ReplayOptions, historical, replay, with_settings
from stream_peer.tools.replay.run import InputRecord, ReplayProbe

_NEXT_ASSIGNMENT = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_.-]*=)")

Progress = Callable[[int, int], None]


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


class Follower(ReplayProbe):
    """A probe that keeps how the forecasts of a replay do; what it is shown, another probe is shown as well."""

    def __init__(self, other: ReplayProbe | None = None) -> None:
        self.prequential = Prequential()
        self._other = other or ReplayProbe()

    def before_input(self, arrival: InputRecord, stage: QuestionStage | ControlStage) -> None:
        """For the other one."""
        self._other.before_input(arrival, stage)

    def after_input(self, effects: Effects, stage: QuestionStage | ControlStage) -> None:
        """For the other one."""
        self._other.after_input(effects, stage)

    def before_record(self, record: Record, stage: FeedStage) -> None:
        """For the other one."""
        self._other.before_record(record, stage)

    def after_record(self, effects: Effects, stage: FeedStage) -> None:
        """Look at the questions of which something was said."""
        self._other.after_record(effects, stage)
        self.prequential.follow(effects, stage)


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
        self._live: Follower | None = None

    def kept(self, files: Sequence[Iterable[FileLine]]) -> Sequence[Iterable[FileLine]]:
        """The lines of the live replay. They are kept if they must be read again: a pipe cannot be."""
        if not self._documents:
            return files
        self._files = [list(lines) for lines in files]
        return self._files

    def following(self, probe: ReplayProbe | None) -> ReplayProbe | None:
        """The probe of the live replay: the one that it has anyway, followed if there are shadows."""
        if not self._documents:
            return probe
        self._live = Follower(probe)
        return self._live

    def run(self, progress: Progress | None = None) -> dict[str, list[ShadowScores]]:
        """How the shadows did, by feed, in their order. ``progress`` is called for each replay, from 0."""
        found: dict[str, list[ShadowScores]] = {}
        live = self._live.prequential.questions if self._live else {}
        for name, document in self._documents.items():
            follower = Follower()
            replay(self._files, self._options._replace(document=document), progress=progress, probe=follower)
            for feed, scores in shadow_scores(name, follower.prequential.questions, live).items():
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
