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
from stream_peer.tools.explain.question_life import NarratedStep, narrate
from stream_peer.tools.explain.question_timeline import LifeStep, QuestionProbe
from stream_peer.tools.replay.files import read_lines
from stream_peer.tools.replay.replay import replay
from stream_peer.tools.replay.run import CONTROLS, InputRecord

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
        "Announcement",
        "The question is *scheduled* now. The question stage changes its own state only. Three forecasts arrive before "
        "the opening (lines 147 to 154) and wait for it; the later one of amara's two will count.",
    ),
    Scene(
        164,
        "First round",
        "The first boundary, seven days after the opening, is due with the first later record. The question stage "
        "writes the round to the feed-log; `src` names the causing record. The feed stage scores it with weights "
        "that do not know this question, and publishes. `revision` is the offset of the round in the feed-log.",
        _ALL,
    ),
    Scene(
        166,
        "Late forecast",
        "The round of the same boundary is written again with other content, and its outputs get a higher revision. "
        "Facts of other rounds stay. In a live feed `backdate_limit` says from when such a forecast counts, and "
        "`late_forecasts: refuse` sends it to `dead-letters`.",
    ),
    Scene(
        182,
        "Invalid event",
        "It becomes a dead letter with the reason in its headers. Processing goes on as if it had not been there.",
        (topics.DEAD_LETTERS,),
    ),
    Scene(
        202,
        "Outcome",
        "The rounds do not change: the mixed forecast, the votes and the reference answers stay. The evidence changes: "
        "losses against the outcome are known, and weights and error rates follow from the new sums.",
        (topics.PEER_LOSSES, topics.MIXED_FORECASTS),
    ),
    Scene(
        203,
        "Retraction",
        "`open` retracts the outcome. The sums lose its contribution exactly, so every weight has its earlier value "
        "again. The next resolution may say the opposite (line 205).",
    ),
    Scene(
        209,
        "Earlier close",
        "A resolution with `closed_at` ends the question in the past. Rounds after it are withdrawn, and the close "
        "becomes the last boundary.",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        215,
        "Reopening",
        "The resolution was retracted (line 214), and the close moves ahead: the question is *open* again, its last "
        "round is withdrawn, and boundaries that the clock has passed are due at once.",
    ),
    Scene(
        222,
        "Exclusion",
        "chidi is absent from rounds scored after this control event. Earlier scores stay, and "
        '`"excluded": false` (line 238) restores the record.',
    ),
    Scene(
        233,
        "Annulment",
        "The annulment (line 232) closes the question; the feed stage gets it when the clock has passed that close. An "
        "annulled question adds nothing to any sum. `open` (line 235) restores it.",
        (topics.REFERENCE_ANSWERS,),
    ),
    Scene(
        243,
        "Erasure",
        "The feed is rebuilt from its log without farid: sums, error rates and weights are those of a feed that it "
        "never joined, and the questions of its rounds are published again. The control itself stays in "
        "`control-events` and in the feed-log: send pseudonyms if that is too much.",
        (topics.PEER_LOSSES,),
    ),
    Scene(
        244,
        "Event of an erased expert",
        "It is refused. This dead letter has neither payload nor key.",
        (topics.DEAD_LETTERS,),
    ),
)
_CHANGELOGS = """\
Two changelogs hold what the stages need after a restart, under keys that name the partition; only the owner reads them.

| when | `question-state` | `feed-state` |
| --- | --- | --- |
| announcement | its times, each with when it was stated | |
| forecasts | the history: expert, time, probability | |
| a round is emitted | its boundary and a hash of its content | its entry in the ledger: the facts of each round |
| an outcome | the current resolution, and the outcome sent | the evidence in the entry |
| a control | erased experts, as digests | teams, excluded and erased experts |
| `history_for` after the close | a stub: feed, resolution, outcome sent | |
| `ledger_for` or `retract_for` after the last news | deleted | the entry is deleted, its sums stay |
"""


class _Recorder(QuestionProbe):
    """Notes which outputs came with which line."""

    def __init__(self) -> None:
        super().__init__(QUESTION)
        self.line = ""
        self.offsets: dict[str, tuple[str, int]] = {}
        self.outputs: list[tuple[str, Output]] = []

    def before_input(self, arrival: InputRecord, stage: QuestionStage | ControlStage) -> None:
        """Remember the line."""
        super().before_input(arrival, stage)
        self.line = arrival.event.place.rpartition(":")[2]
        self.offsets.setdefault(self.line, (arrival.topic, arrival.offset))

    def write(self, output: Output) -> None:
        """Remember an output with its line."""
        self.outputs.append((self.line, output))


def files(root: Path) -> dict[str, str]:
    """The page, by its path."""
    recorder = _Recorder()
    replay([read_lines(root / EXAMPLE)], probes=[recorder], write=recorder.write)
    steps = {one.arrival.event.place.rpartition(":")[2]: one for one in recorder.steps()}
    narrated = narrate(QUESTION, recorder.steps()).steps
    parts = [_scene(scene, steps[str(scene.line)], narrated, recorder) for scene in _SCENES]
    return {PAGE: "\n".join([*parts, "### Changelogs", "", _CHANGELOGS])}


def _scene(scene: Scene, step: LifeStep, narrated: tuple[NarratedStep, ...], recorder: _Recorder) -> str:
    (told,) = [one for one in narrated if one.heading.endswith(f"(line {scene.line})")]
    blocks = "\n".join(_blocks(scene, step, recorder))
    quoted = [f"> {told.heading}", *(f">\n> {item}" for item in told.items)]
    return "\n".join([f"### {scene.title}", "", _wrapped(scene.text), "", *map(_wrapped_quote, quoted), "", blocks])


def _blocks(scene: Scene, step: LifeStep, recorder: _Recorder) -> Iterator[str]:
    event = step.arrival.event
    is_control = event.kind in CONTROLS
    topic, offset = recorder.offsets[str(scene.line)]
    yield _block(f"{topic if is_control else topics.FORECAST_EVENTS}, offset {offset}", [json.loads(event.payload)])
    logged = [msg for line, msg in recorder.outputs if line == str(scene.line) and msg.topic == topics.FEED_LOG]
    if step.feed_steps:
        of_question = [output.value for output in logged if output.value and _is_told(output.value)]
        offsets = [str(one.revision) for one in step.feed_steps]
        where = f"feed-log, offset {offsets[0]}" + (f" to {offsets[-1]}" if len(offsets) > 1 else "")
        yield _block(where, [json.loads(value) for value in of_question])
    for name in scene.shown:
        yield _output_block(name, scene, step, recorder)


def _is_told(value: bytes) -> bool:
    record = json.loads(value)
    return record.get("question_id") == QUESTION or record["type"] in CONTROLS


def _output_block(topic: str, scene: Scene, step: LifeStep, recorder: _Recorder) -> str:
    if topic == topics.DEAD_LETTERS:
        (letter,) = [one for line, one in recorder.outputs if line == str(scene.line) and one.topic == topic]
        headers = {"header stream-peer-reason": refusal_of(letter.headers).reason}
        headers["header __streams.errors.message"] = refusal_of(letter.headers).message
        return _block(topic, [headers, *([json.loads(letter.value)] if letter.value else [])])
    key = QUESTION if topic in topics.KEYED_BY_QUESTION else "macro"
    values = [
        json.loads(o.value) for _, o in recorder.outputs if o.topic == topic and o.key == key.encode() and o.value
    ]
    last = step.feed_steps[-1].revision
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
