"""The worked example of docs/semantics.md: the life of one question with the records on every topic, from a replay."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stream_peer.events import topics
from stream_peer.log.dead_letters import refusal_of
from stream_peer.log.stage import Output
from stream_peer.questions.control_stage import ControlStage
from stream_peer.questions.stage import QuestionStage
from stream_peer.tools.explain.question_life.explainer import Chapter, Explainer
from stream_peer.tools.explain.question_life.story import Passage, story
from stream_peer.tools.replay.jsonl import read_lines
from stream_peer.tools.replay.replay import replay
from stream_peer.tools.replay.run import CONTROLS, Arrival

EXAMPLE = "examples/life-of-a-question.jsonl"
QUESTION = "fed-cut-june-2026"
PAGE = "docs/generated/life.md"
_WIDTH = 112
_DIGITS = 4
_SHOWN = 2


class Scene(NamedTuple):
    """A line of the example: its title here, what to know of it, and which topics to show after the feed-log."""

    line: int
    title: str
    text: str
    shown: tuple[str, ...] = ()


_ALL = (*topics.KEYED_BY_QUESTION, *topics.KEYED_BY_FEED)
_SCENES = (
    Scene(
        144,
        "It is announced",
        "The question stage knows it now: it is *scheduled*. It writes its own state and nothing else. Three forecasts "
        "come before the opening (lines 147 to 154); they wait, and of amara's two the later one will count.",
    ),
    Scene(
        164,
        "The first round",
        "The first boundary, seven days after the opening, is due with the first record that is later. The round goes "
        "to the feed-log; its `src` names the record that caused it. The feed stage scores it under weights that know "
        "nothing of this question, and publishes. `revision` is the offset of the round in the feed-log.",
        _ALL,
    ),
    Scene(
        166,
        "A late forecast",
        "The boundary is the same and the content another one: the round is written again, and what is published of it "
        "bears a higher revision. Facts of other rounds stay. In a live feed `backdate_limit` says from when such a "
        "forecast counts, and `late_forecasts: refuse` sends it to `dead-letters`.",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        182,
        "A line that cannot be used",
        "It is set aside untouched, with the reason in its headers, and the next line is folded as if it had not been "
        "there.",
        (topics.DEAD_LETTERS,),
    ),
    Scene(
        202,
        "The outcome",
        "An outcome is one record. The rounds are not touched: the mixed forecast, the votes and the answers of the "
        "experts stay what they were. What changes is the evidence, so losses against the outcome are known, and "
        "weights and error rates are read from other sums.",
        (topics.PEER_LOSSES, topics.MIXED_FORECASTS, topics.ERROR_RATES),
    ),
    Scene(
        203,
        "It was wrong",
        "`open` takes it back: the old contribution is taken out of the sums and the new one put in, in integers, so "
        "that every weight is again what it was, to the last bit. The next resolution may say the opposite (line 205).",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        209,
        "It had closed earlier",
        "A resolution with `closed_at` cuts in the past. Rounds after it cease to exist and are withdrawn, the cut "
        "becomes the last boundary, and nobody is counted as having withdrawn a forecast.",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        215,
        "It reopens",
        "The resolution was retracted (line 214), and the close is moved ahead: the question is *open* again, its last "
        "round is withdrawn, and boundaries that now lie before the clock are due at once.",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        222,
        "An expert is excluded",
        "A control event. In rounds scored from here on chidi is absent; what it did before stands still, and "
        '`"excluded": false` (line 238) brings all of it back.',
        (topics.WEIGHTS,),
    ),
    Scene(
        233,
        "It is annulled",
        "The annulment (line 232) closes the question, and is told once that close has passed. An annulled question "
        "adds nothing to any sum: not to weights, not to error rates. `open` (line 235) restores it.",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        243,
        "An expert asks to be forgotten",
        "The feed's log is folded again from its start, without farid: sums, error rates and everybody's weights are "
        "those of a feed in which it had never been, and every question in whose rounds it stood is published anew "
        "without it. The control itself stays in `control-events` and in the feed-log: use pseudonyms if that is too "
        "much.",
        (topics.PEER_LOSSES,),
    ),
    Scene(
        244,
        "and says something after all",
        "Events of a forgotten expert are refused. This dead letter has neither payload nor key.",
        (topics.DEAD_LETTERS,),
    ),
)
_CHANGELOGS = """\
Two changelogs hold what the stages need after a restart, under keys that name the partition; nobody else reads them. Of
this question they held, in turn:

| when | `question-state` | `feed-state` |
| --- | --- | --- |
| announced | its moments, each with when it was stated | |
| forecasts | the history: who, from when, which probability | |
| a round is emitted | its boundary and a hash of its content | its entry in the ledger: the facts of each round |
| an outcome is told | the resolution in force, and what was told | the evidence in the entry |
| a control | who is forgotten, as digests | teams, who is excluded, who is forgotten |
| `history_for` after the close | a stub: feed, resolution, what was told | |
| `ledger_for` or `retract_for` after the last news | gone | the entry goes, what it added to the sums stays |
"""


class _Recorder(Explainer):
    """Notes beside the chapters which outputs came with which line."""

    def __init__(self) -> None:
        super().__init__(QUESTION)
        self.line = ""
        self.offsets: dict[str, tuple[str, int]] = {}
        self.outputs: list[tuple[str, Output]] = []

    def arrives(self, arrival: Arrival, stage: QuestionStage | ControlStage) -> None:
        """Remember the line."""
        super().arrives(arrival, stage)
        self.line = arrival.event.place.rpartition(":")[2]
        self.offsets.setdefault(self.line, (arrival.topic, arrival.offset))

    def write(self, output: Output) -> None:
        """Remember an output with its line."""
        self.outputs.append((self.line, output))


def files(root: Path) -> dict[str, str]:
    """The page, by its path."""
    recorder = _Recorder()
    replay([read_lines(root / EXAMPLE)], witness=recorder, write=recorder.write)
    chapters = {one.arrival.event.place.rpartition(":")[2]: one for one in recorder.chapters()}
    passages = story(QUESTION, recorder.chapters()).passages
    parts = [_scene(scene, chapters[str(scene.line)], passages, recorder) for scene in _SCENES]
    return {PAGE: "\n".join([*parts, "### What the changelogs hold", "", _CHANGELOGS])}


def _scene(scene: Scene, chapter: Chapter, passages: tuple[Passage, ...], recorder: _Recorder) -> str:
    (passage,) = [one for one in passages if one.heading.endswith(f"(line {scene.line})")]
    blocks = "\n".join(_blocks(scene, chapter, recorder))
    told = [f"> {passage.heading}", *(f">\n> {item}" for item in passage.items)]
    return "\n".join([f"### {scene.title}", "", _wrapped(scene.text), "", *map(_wrapped_quote, told), "", blocks])


def _blocks(scene: Scene, chapter: Chapter, recorder: _Recorder) -> Iterator[str]:
    event = chapter.arrival.event
    is_control = event.kind in CONTROLS
    topic, offset = recorder.offsets[str(scene.line)]
    yield _block(f"{topic if is_control else topics.FORECAST_EVENTS}, offset {offset}", [json.loads(event.payload)])
    logged = [msg for line, msg in recorder.outputs if line == str(scene.line) and msg.topic == topics.FEED_LOG]
    if chapter.logged:
        of_question = [output.value for output in logged if output.value and _is_told(output.value)]
        offsets = [str(one.revision) for one in chapter.logged]
        where = f"feed-log, offset {offsets[0]}" + (f" to {offsets[-1]}" if len(offsets) > 1 else "")
        yield _block(where, [json.loads(value) for value in of_question])
    for name in scene.shown:
        yield _output_block(name, scene, chapter, recorder)


def _is_told(value: bytes) -> bool:
    record = json.loads(value)
    return record.get("question_id") == QUESTION or record["type"] in CONTROLS


def _output_block(topic: str, scene: Scene, chapter: Chapter, recorder: _Recorder) -> str:
    if topic == topics.DEAD_LETTERS:
        (letter,) = [one for line, one in recorder.outputs if line == str(scene.line) and one.topic == topic]
        headers = {"header stream-peer-reason": refusal_of(letter.headers).reason}
        headers["header __streams.errors.message"] = refusal_of(letter.headers).message
        return _block(topic, [headers, *([json.loads(letter.value)] if letter.value else [])])
    key = QUESTION if topic in topics.KEYED_BY_QUESTION else "macro"
    values = [
        json.loads(o.value) for _, o in recorder.outputs if o.topic == topic and o.key == key.encode() and o.value
    ]
    last = chapter.logged[-1].revision
    (record,) = [value for value in values if value["revision"] == last]
    return _block(f"{topic}, key {key}", [record])


def _block(where: str, records: list[Any]) -> str:
    lines = [line for record in records for line in _lines(record)]
    return "\n".join([f"`{where}`", "", "```text", *lines, "```", ""])


def _lines(record: Any) -> list[str]:
    text = json.dumps(_shortened(record), ensure_ascii=False).replace('"…', "… ").replace(' more"', " more")
    return textwrap.wrap(text, _WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)


def _shortened(value: Any) -> Any:
    """Numbers to a few digits, long lists by their first members: enough to read, and the same on every machine."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {name: _shortened(part) for name, part in value.items()}
    if isinstance(value, list) and len(value) > _SHOWN + 1 and not isinstance(value[0], str | int | float):
        return [*map(_shortened, value[:_SHOWN]), f"…{len(value) - _SHOWN} more"]
    return [_shortened(part) for part in value] if isinstance(value, list) else value


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


def _wrapped_quote(text: str) -> str:
    start, _, said = text.rpartition("> ")
    body = textwrap.wrap(said, 114, break_long_words=False, break_on_hyphens=False)
    return start + "\n".join(f"> {line}" for line in body)
