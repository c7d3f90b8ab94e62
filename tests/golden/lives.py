"""The lives that are folded, by name: of files, of data sets, random ones, and ones of what is rare."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.feed_variants import NOT_RECORDED, VARIANTS
from tests.golden import random_lives, rare_lives
from tests.golden.records import Life, Sent, read_life

REPOSITORY = Path(__file__).parents[2]
HERE = Path(__file__).parent
DEMO = next((REPOSITORY / "stream_peer").glob("**/digits_even.jsonl.gz"))
STORY = REPOSITORY / "examples" / "life-of-a-question.jsonl"
IMPORTED = HERE / "import-events.jsonl"

DATA_SETS = {"crowd_bluebirds.jsonl": 4428, "us_polls_general.jsonl.gz": 5000, "solar_flares_metoffice.jsonl": 6444}
"""Files in ``STREAM_PEER_DATA``, and how many of their lines are folded."""

Document = Mapping[str, Any]

RECORDED_VARIANTS = {name: document for name, document in VARIANTS.items() if name not in NOT_RECORDED}
"""Of the mathematics, those that only a replay serves, and the preset paper: each on the first half of the story."""
_OF_STORY = 122


def lives() -> dict[str, Callable[[], Life]]:
    """All lives that need no data set, by name."""
    own: dict[str, Callable[[], Life]] = {
        "demo": lambda: _of_file("demo", DEMO, {"round_every": "45m"}),
        "life-of-a-question": lambda: _of_file("life-of-a-question", STORY, {}),
        "long": lambda: random_lives.random_life("long", seed=1, questions=240),
        "short": random_lives.short,
        "moved": random_lives.moved,
        "crowd": rare_lives.crowd,
        "wide": rare_lives.wide,
        "edges": rare_lives.edges,
        "import-events": lambda: read_life(IMPORTED),
    }
    second: dict[str, Callable[[], Life]] = {
        "second-demo": lambda: _of_file("second-demo", DEMO, {"round_every": "45m", "method_version": 2}),
        "second-short": lambda: _second("second-short", random_lives.short()),
        "second-crowd": lambda: _second("second-crowd", rare_lives.crowd()),
        "grouped": rare_lives.grouped,
        "raised": lambda: _second("raised", random_lives.random_life("raised", seed=1, questions=240), first=1),
    }
    variants = {f"variant-{name}": _varied(f"variant-{name}", document) for name, document in RECORDED_VARIANTS.items()}
    return {**own, **second, **variants}


def _second(name: str, life: Life, first: int = 0) -> Life:
    """A life whose settings, but for so many of the first, state version 2 of the method; others state none."""
    sent, left = [], first
    for one in life.sent:
        event = json.loads(one.value or "{}") if one.topic == "control-events" else {}
        document = event.get("document") if event.get("type") == "settings" else None
        if document is None or "cubed" in str(document) or event["hash"] == "00000000":
            sent.append(one)
        elif left:
            left -= 1
            sent.append(one)
        else:
            stated = {**document, "defaults": {"method_version": 2, **document.get("defaults", {})}}
            sent.append(random_lives.settings_event(one.at, stated, event["event_id"]))
    return life._replace(name=name, sent=sent)


def data_lives(directory: Path) -> dict[str, Callable[[], Life]]:
    """Lives of data sets."""
    return {name: _of_data(name, directory) for name in data_names()}


def data_names() -> list[str]:
    return [name.partition(".")[0] for name in DATA_SETS]


def _of_data(name: str, directory: Path) -> Callable[[], Life]:
    file, lines = next((file, lines) for file, lines in DATA_SETS.items() if file.startswith(name + "."))
    return lambda: _of_file(name, directory / file, {}, lines)


def _varied(name: str, document: Document) -> Callable[[], Life]:
    return lambda: _of_file(name, STORY, document, _OF_STORY)


def _of_file(name: str, path: Path, defaults: Document, most: int | None = None) -> Life:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    lines = [line for line in text.splitlines() if line.strip()][:most]
    sent = [Sent("line", 0, None, line.decode(errors="surrogateescape")) for line in lines]
    return Life(name, "replay", {"defaults": dict(defaults)}, sent, partitions=2)
