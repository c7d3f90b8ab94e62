"""What a post costs the gateway: CPU time an event, single and in lines, by one client or many at a time.

    python -m benchmarks.gateway --rounds 3 --write benchmarks/README.md

The gateway writes to a real Kafka; time of the client and of the broker is not counted. ``--floor 2000`` fails where
single posts cost more than one core has at so many a second.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import aiohttp
import yaml

from benchmarks.deployment import Deployment
from benchmarks.measuring import Cost, Meter
from benchmarks.pages import in_markdown, write
from benchmarks.pipeline import broker, machine

_TOKEN = "the-token-of-the-benchmark"  # noqa: S105 - of a gateway that nobody else reaches
_AT_ONCE = 32
_READY_SECONDS = 60.0


class Way(NamedTuple):
    """How many events a post has."""

    name: str
    lines: int


WAYS = (Way("single", 1), Way("lines of 10", 10), Way("lines of 100", 100), Way("lines of 1,000", 1_000))


def bodies(events: int, lines: int) -> list[bytes]:
    """Posts of forecasts."""
    said = [
        json.dumps(
            {
                "type": "forecast",
                "question_id": f"q{number % 500}",
                "expert_id": f"e{number % 50}",
                "probability": round(number % 97 / 100, 2),
                "at": "2026-03-01T12:00:00Z",
                "feed": "econ",
            }
        ).encode()
        for number in range(events)
    ]
    return [b"\n".join(said[start : start + lines]) for start in range(0, events, lines)]


async def post_all(url: str, posts: Sequence[bytes], kind: str) -> None:
    """Post everything, some posts at a time; each must be accepted."""
    left = iter(enumerate(posts))
    headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": kind}

    async def some(session: aiohttp.ClientSession) -> None:
        for number, body in left:
            named = {**headers, "Idempotency-Key": str(number)}
            async with session.post(f"{url}/events", data=body, headers=named) as answer:
                if answer.status != 202:
                    msg = f"{answer.status}: {await answer.text()}"
                    raise RuntimeError(msg)
                await answer.read()

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(some(session) for _ in range(_AT_ONCE)))


async def wait_ready(url: str) -> None:
    """Until the brokers take its events."""
    async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/healthz/ready") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


def prepare(deployment: Deployment, port: int) -> None:
    """Topics, a producer with its key, and its token."""
    directory = deployment.directory
    (directory / "bench.key").write_text("the key of the benchmark's producer")
    (directory / "tokens").write_text(f"bench {_TOKEN}\n")
    producers = {"producers": {"bench": {"key_file": "bench.key", "experts": ["*"]}}}
    (directory / "producers.yaml").write_text(yaml.safe_dump(producers))
    unlimited = {"events_per_second": 10**9, "bytes_per_second": 10**12}
    deployment.prepare(
        http={"port": port},
        producers_file=str(directory / "producers.yaml"),
        gateway={"tokens_file": str(directory / "tokens"), **unlimited},
    )


def measured(deployment: Deployment, events: int, port: int, rounds: int) -> dict[str, list[Cost]]:
    """The costs of each way, in turn."""
    costs: dict[str, list[Cost]] = {way.name: [] for way in WAYS}
    prepare(deployment, port)
    url = f"http://127.0.0.1:{port}"
    with deployment.worker(command="gateway") as process, Meter(process.pid) as meter:
        asyncio.run(wait_ready(url))
        for way in WAYS * rounds:
            kind = "application/json" if way.lines == 1 else "application/x-ndjson"
            posts = bodies(events, way.lines)
            began = time.monotonic()
            asyncio.run(post_all(url, posts, kind))
            ended = time.monotonic()
            time.sleep(0.1)  # the meter samples every 20 ms
            costs[way.name].append(meter.between(began, ended))
    return costs


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--bootstrap", help="a broker that runs; default: one is started")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--port", type=int, default=18_081)
    parser.add_argument("--floor", type=int, default=0, help="events per CPU-second of single posts, at least")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page as well")
    options = parser.parse_args()
    where = machine(options.rounds)
    with tempfile.TemporaryDirectory() as name, broker(options.bootstrap, Path(name)) as bootstrap:
        deployment = Deployment(bootstrap, f"gateway-{time.time_ns()}-", Path(name))
        costs = measured(deployment, options.events, options.port, options.rounds)
    rates = {name: sorted(options.events / cost.cpu_seconds for cost in found) for name, found in costs.items()}
    rows = []
    for name, found in rates.items():
        shown = ", ".join(f"{rate:,.0f}" for rate in (found[0], median(found), found[-1]))
        rows.append([name, shown, f"{max(cost.rss_peak_mb for cost in costs[name]):,.0f}"])
    head = "posts", "events per CPU-second: least, median, most", "peak MB"
    lines = [f"**Measured** on {where}:", "", *in_markdown(head, rows, len(head))]
    print(*lines, sep="\n")
    if options.write:
        write(options.write, lines, "gateway")
    return 0 if median(rates["single"]) >= options.floor else 1


if __name__ == "__main__":
    sys.exit(main())
