"""What do attacks cost? ``python -m benchmarks.attacks DATA_DIR [--set NAME=VALUE …] [--write FILE]``.

Panels of experts from data sets are attacked, and lived through by the product's feed stage, once without outcomes and
once with three tenths of them. The un-attacked panel with ``guard: off`` is what the mix is compared with. The exit
code is 0 if the limits hold, 1 if not.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.attack_panels import (
    ATTACKS,
    BLOCKS,
    FOLLOWERS,
    UNLIMITED,
    Follower,
    Panel,
    Row,
    follower_panels,
    own_opinion,
    panels,
    rounds_of,
)
from benchmarks.pages import in_markdown, write
from stream_peer.events import topics
from stream_peer.events.feed_log import OutcomeRevealed, Round, Source, encode_feed_log
from stream_peer.feeds.fold import Change, QuestionChanged
from stream_peer.feeds.stage import FeedStage
from stream_peer.log.driver import pump, rebuild
from stream_peer.log.stage import Effects, LogRecord
from stream_peer.settings.feed.document import load_document
from stream_peer.tools.replay.replay import with_settings

LEVELS = (0.0, 0.3)
"""Shares of outcomes that are revealed."""

MOST = 1.05
"""Of the un-attacked mix, over the last two thirds, in the attacks by as many as the panel."""
MOST_NATURAL = 1.005
MOST_HELD = 0.05
NAMED_BY, MOST_NAMED = 150, 0.8
"""By this question such a share of a block is named."""

_LOOKS = 25


class Life(NamedTuple):
    """What came of one life.

    ``losses``: squared losses of the mix, by question; ``alarm``: the question at which so many attackers were named as
    is asked for, None: never; ``named``: the share of attackers that is named at the end; ``others``: how many others
    are; ``held``: means over the last half of what the attackers hold of ``select`` and ``mix``.
    """

    losses: Sequence[float]
    alarm: int | None = None
    named: float = 0.0
    others: int = 0
    held: tuple[float, float] = (0.0, 0.0)


class Feed:
    """One feed of the product, told rounds and outcomes, with its log."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._stage = FeedStage(topic=topics.FEED_LOG, partition=0, settings=load_document({"defaults": settings}))
        self._log = list[LogRecord]()

    def say(self, question: int, boundary: int, row: Row, *, final: bool) -> Mapping[str, float]:
        """Score a round; what is published of it, by mixer."""
        experts = sorted(row)
        round_ = Round(
            src=self._source(),
            feed="f",
            question_id=f"q{question}",
            boundary=boundary,
            final=final,
            experts=experts,
            probabilities=[row[expert] for expert in experts],
        )
        for change in self._fold(encode_feed_log(round_), boundary):
            if isinstance(change, QuestionChanged) and change.latest is not None:
                return {"mean": change.latest.mix.mean, "mix": change.latest.mix.mix}
        return {}

    def reveal(self, question: int, at: int, outcome: int) -> None:
        """Tell an outcome."""
        told = OutcomeRevealed(src=self._source(), feed="f", question_id=f"q{question}", outcome=1 if outcome else 0)
        self._fold(encode_feed_log(told), at)

    def held(self, experts: frozenset[str]) -> tuple[float, float]:
        """What experts hold together of ``select`` and ``mix``."""
        listed = [one for one in self._stage.views()["f"].weights.experts if one.id in experts]
        return sum(one.select for one in listed), sum(one.mix for one in listed)

    @property
    def named(self) -> set[str]:
        """Experts who are in groups."""
        feed = self._stage.feeds.by_name["f"]
        return {feed.roster.experts[place] for group in feed.path_state.groups for place in group.experts}

    def _fold(self, record: bytes | None, at: int) -> Sequence[Change]:
        """Append a record to the log, fold it, rebuild the feed if need be, and fold what the feed writes itself."""
        stage = self._stage
        self._log.append(LogRecord(len(self._log), at, b"f", record))
        changes = stage.step(self._log[-1], Effects())
        while stage.needs_rebuild:
            pump(rebuild(stage, self._log[-1].offset), lambda up_to: self._log[: up_to + 1])
        own = stage.hand_overs_due()
        stage.handed_over()
        for output in own:
            self._fold(output.value, output.timestamp)
        return changes

    def _source(self) -> Source:
        return Source(topics.FORECAST_EVENTS, 0, 0, len(self._log), 0)


def live(
    rows: Sequence[Row], panel: Panel, attackers: frozenset[str], settings: Mapping[str, Any], level: float
) -> Life:
    """Live through a panel, one round a question."""
    feed, random, losses = Feed(settings), np.random.default_rng(1), []
    alarm, held = None, []
    for number, (row, outcome) in enumerate(zip(rows, panel.outcomes, strict=True), 1):
        at = 1_700_000_000_000 + 3_600_000 * number
        losses.append((feed.say(number, at, row, final=True)["mix"] - outcome) ** 2)
        if random.random() < level:
            feed.reveal(number, at + 1, outcome)
        if number % _LOOKS == 0:
            if alarm is None and attackers and len(feed.named & attackers) >= MOST_NAMED * len(attackers):
                alarm = number
            if number > len(rows) // 2:
                held.append(feed.held(attackers))
    named = feed.named
    share = len(named & attackers) / len(attackers) if attackers else 0.0
    select, mix = np.mean(held, axis=0).tolist()
    return Life(losses, alarm, share, len(named - attackers), (select, mix))


def follow(panel: Panel, follower: Follower | None, settings: Mapping[str, Any], level: float) -> Life:
    """Live through a panel in rounds of an hour, with one who sends what was published before."""
    feed, random, losses = Feed(settings), np.random.default_rng(3), []
    own, held = own_opinion(panel, random).tolist(), []
    for number, rounds in enumerate(rounds_of(panel, random)):
        published: list[Mapping[str, float]] = []
        for hour, row in enumerate(rounds):
            said = dict(row)
            if follower is not None and hour >= follower.lag and published[hour - follower.lag]:
                before = published[hour - follower.lag][follower.what]
                said["follower"] = (1.0 - follower.own) * before + follower.own * own[number]
            at = 1_700_000_000_000 + 86_400_000 * number + 3_600_000 * hour
            published.append(feed.say(number, at, said, final=hour == len(rounds) - 1) if said else {})
        losses.append((published[-1]["mix"] - panel.outcomes[number]) ** 2)
        if random.random() < level:
            feed.reveal(number, at + 1, panel.outcomes[number])
        if number > len(panel.rows) // 2 and number % 5 == 0:
            held.append(feed.held(frozenset(["follower"])))
    named = feed.named
    select, mix = np.mean(held, axis=0).tolist()
    return Life(losses, None, float("follower" in named), len(named - {"follower"}), (select, mix))


class Task(NamedTuple):
    """One life to live: ``attack`` is the name of one, or empty."""

    panel: Panel
    attack: str
    level: float
    settings: Mapping[str, Any]
    follows: bool = False


def perform(task: Task) -> Life:
    """Live a life."""
    if task.follows:
        return follow(task.panel, FOLLOWERS.get(task.attack), task.settings, task.level)
    if not task.attack:
        return live(task.panel.rows, task.panel, frozenset(), task.settings, task.level)
    attack = ATTACKS[task.attack](task.panel, np.random.default_rng(2))
    return live(attack.rows, task.panel, attack.attackers, task.settings, task.level)


class Result(NamedTuple):
    """All lives: by level, attack ("": none) and panel, the attacked ones and the un-attacked ones without guard."""

    attacked: Mapping[tuple[float, str, str], Life]
    alone: Mapping[tuple[float, str], Life]
    followed: Mapping[tuple[float, str, str], Life]

    def cost(self, level: float, attack: str, panel: str, since: int = 0) -> float:
        """Brier score of the mix from a question on, divided by that of the un-attacked mix."""
        found, alone = self.attacked[level, attack, panel], self.alone[level, panel]
        return sum(found.losses[since:]) / sum(alone.losses[since:])


def measured(directory: Path, settings: Mapping[str, Any], processes: int) -> Result:
    """Live all lives."""
    unguarded = {**settings, "guard": "off"}
    followed = follower_panels(directory)
    attacks = [
        Task(panel, attack, level, settings)
        for level in LEVELS
        for attack in ("", *ATTACKS)
        for panel in panels(directory)
    ]
    alone = [Task(panel, "", level, unguarded) for level in LEVELS for panel in panels(directory)]
    follows = [
        Task(panel, name, level, settings, follows=True) for level in LEVELS for name in FOLLOWERS for panel in followed
    ]
    with ProcessPoolExecutor(processes) as pool:
        lives = list(pool.map(perform, [*attacks, *alone, *follows], chunksize=4))
    ends = len(attacks), len(attacks) + len(alone)
    return Result(
        {(one.level, one.attack, one.panel.name): life for one, life in zip(attacks, lives[: ends[0]], strict=True)},
        {(one.level, one.panel.name): life for one, life in zip(alone, lives[ends[0] : ends[1]], strict=True)},
        {(one.level, one.attack, one.panel.name): life for one, life in zip(follows, lives[ends[1] :], strict=True)},
    )


def page(result: Result) -> tuple[list[str], bool]:
    """The tables, and whether every limit holds. What is beyond a limit stands in bold."""
    lines = []
    for level in LEVELS:
        lines += [
            "",
            f"{'Without outcomes' if not level else f'With {level:.0%} of the outcomes'}: the mix, divided by the"
            " un-attacked one with `guard: off`, over all questions / over the last two thirds; the question by which"
            f" {MOST_NAMED:.0%} of the attackers are named; how many are named at the end (+ others).",
            "",
            *_table("attack", _attack_cells(result, level)),
            "",
            "What a follower holds of `select` / of `mix` in the last half (*n*: named at the end).",
            "",
            *_table("follower", _follower_cells(result, level)),
        ]
    beyond = sum(line.count("**") // 2 for line in lines)
    verdict = f"Beyond the limits, in bold: {beyond}." if beyond else "All limits hold."
    return [*lines[1:], "", verdict], not beyond


def _table(kind: str, cells: Mapping[tuple[str, str], str]) -> list[str]:
    names, rows = (list(dict.fromkeys(place[axis] for place in cells)) for axis in (1, 0))
    return in_markdown([kind, *names], [[row or "none", *(cells[row, name] for name in names)] for row in rows])


def _attack_cells(result: Result, level: float) -> dict[tuple[str, str], str]:
    cells = {}
    for (at, attack, name), life in result.attacked.items():
        if at != level:
            continue
        whole, late = (result.cost(level, attack, name, since) for since in (0, len(life.losses) // 3))
        others = f" (+{life.others})" if life.others else ""
        if not attack:
            cells[attack, name] = f"{_bold(f'{whole:.3f}', whole > MOST_NATURAL)} / {late:.3f}; {life.others} named"
            continue
        cost = f"{whole:.2f} / {_bold(f'{late:.2f}', late > MOST and attack not in UNLIMITED)}"
        is_late = attack in BLOCKS and (life.alarm is None or life.alarm > NAMED_BY)
        cells[attack, name] = f"{cost}; {_bold(str(life.alarm or '–'), is_late)}; {life.named:.0%}{others}"
    return cells


def _follower_cells(result: Result, level: float) -> dict[tuple[str, str], str]:
    return {
        (attack, name): f"{_bold(f'{select:.2f}', select > MOST_HELD)} / {mix:.2f}{' *n*' if life.named else ''}"
        for (at, attack, name), life in result.followed.items()
        if at == level
        for select, mix in [life.held]
    }


def _bold(text: str, beyond: bool) -> str:  # noqa: FBT001 - is a property of the text
    return f"**{text}**" if beyond else text


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="of the data sets")
    parser.add_argument(
        "--set", nargs="+", default=["method_version=2"], metavar="NAME=VALUE", help="settings of the feed"
    )
    parser.add_argument("--processes", type=int, default=1, help="lives at once; 1 if left out")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page as well")
    options = parser.parse_args()
    settings = with_settings({"defaults": {}}, options.set)["defaults"]
    lines, holds = page(measured(options.directory, settings, options.processes))
    print("\n".join(lines))
    if options.write:
        write(options.write, lines)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
