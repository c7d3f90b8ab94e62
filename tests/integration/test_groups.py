"""Questions with options and thresholds, sent as groups, on real Kafka: as if each part had been sent alone."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_peer.events import topics
from tests.integration.support.events import Event, at, forecast, milliseconds, question, resolution
from tests.integration.support.lives import DAY, Published, finish, kill, probability
from tests.integration.support.service import Service
from tests.integration.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka

OPTIONS = ("Ada", "Bo", "Cy")
THRESHOLDS = ("2", "2.5")
EXPERTS = range(6)


def asked(feed: str, start: float) -> Iterator[Event]:
    yield question(f"{feed}-chair", feed, start + DAY, opens_at=at(start), options=OPTIONS)
    yield question(f"{feed}-cpi", feed, start + DAY, opens_at=at(start), thresholds=THRESHOLDS)
    for expert in EXPERTS:
        said = {"expert_id": f"e{expert}", "at": at(start + 1 + expert / 100), "type": "forecast"}
        options = {name: probability(number, expert) for number, name in enumerate(OPTIONS)}
        low, high = sorted(probability(number, expert) for number in (5, 6))
        yield {**said, "question_id": f"{feed}-chair", "options": options}
        yield {**said, "question_id": f"{feed}-cpi", "cdf": {"2.0": low, "2.5": high}}


def asked_one_by_one(feed: str, start: float) -> Iterator[Event]:
    parts = [f"{feed}-chair::={name}" for name in OPTIONS] + [f"{feed}-cpi::<={value}" for value in THRESHOLDS]
    for part in parts:
        yield question(part, feed, start + DAY, opens_at=at(start))
    for expert in EXPERTS:
        cdf = sorted(probability(number, expert) for number in (5, 6))
        said = [*(probability(number, expert) for number in range(len(OPTIONS))), *cdf]
        for part, p in zip(parts, said, strict=True):
            yield forecast(part, f"e{expert}", p, start + 1 + expert / 100)


def test_groups_are_published_and_resolved_as_their_parts(lived: Service, start: float, repository: Path) -> None:
    feed, other = "groups", "groupsother"
    lived.send([*asked(feed, start), *asked_one_by_one(other, start)])
    finish(lived, start + 2 * DAY)

    kill(lived)
    late = start + 3 * DAY
    said = {"type": "resolution", "at": at(late)}
    lived.send(
        [{**said, "question_id": f"{feed}-chair", "option": "Bo"}, {**said, "question_id": f"{feed}-cpi", "value": 2.3}]
    )
    told = {"chair::=Ada": 0, "chair::=Bo": 1, "chair::=Cy": 0, "cpi::<=2": 0, "cpi::<=2.5": 1}
    lived.send(resolution(f"{other}-{part}", outcome, late) for part, outcome in told.items())
    finish(lived, late + DAY)

    published = Published(lived)
    mixed = lived.last(topics.MIXED_FORECASTS, feed)
    assert {key: record["outcome"] for key, record in mixed.items()} == {f"{feed}-{one}": y for one, y in told.items()}
    assert published.order_free(feed) == published.order_free(other)
    assert not published.contradictions(feed)
    groups = lived.last(topics.MIXED_GROUPS, feed)
    options, cdf = groups[f"{feed}-chair"]["options"], groups[f"{feed}-cpi"]["cdf"]
    for field in ("mix", "stretched"):
        assert sum(option[field] for option in options) == pytest.approx(1.0, abs=1e-9)
        assert cdf[0][field] <= cdf[1][field]
    assert [option["outcome"] for option in options] == [0, 1, 0]
    assert lived.weights(feed)["certificate"] is None
    status, answer = lived.workers["w1"].http(f"/feeds/{feed}/groups/{feed}-chair")
    assert (status, json.loads(answer)["options"]) == (200, options)
    program = [sys.executable, "examples/read_group.py", f"http://127.0.0.1:{lived.workers['w1'].port}", feed]
    printed = subprocess.run([*program, f"{feed}-chair"], cwd=repository, capture_output=True, text=True, check=True)
    assert [line.partition(":")[0] for line in printed.stdout.splitlines()[:-1]] == list(OPTIONS)
    assert "Bo: " in printed.stdout
    assert printed.stdout.count("came true") == 1
    refused = subprocess.run([*program, "never"], cwd=repository, capture_output=True, text=True, check=False)
    assert "has no group 'never'" in refused.stderr
    assert json.loads(lived.run("tail", feed, "--group", f"{feed}-chair", "--once"))["options"] == options

    kill(lived)
    lived.send([{"type": "question", "question_id": f"{feed}-chair", "feed": f"{feed}new", "at": at(late + 1)}])
    lived.tick(milliseconds(late + 2 * DAY))

    def newest() -> dict[str, Any]:
        values = [one.value for one in lived.read(topics.MIXED_GROUPS) if one.key == f"{feed}-chair".encode()]
        return dict(json.loads(values[-1] or b"{}"))

    wait_until(lambda: newest()["feed"] == f"{feed}new", 60, lambda: f"the last record is {newest()}")
    assert [option["outcome"] for option in newest()["options"]] == [0, 1, 0]
