"""The demo, step by step: worker, settings, events, outputs, what came of it; or its events for a deployment."""

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from rich.console import Console
from rich.text import Text

from stream_peer.errors import MissingExtraError, SettingFault, SettingsError, StreamPeerError
from stream_peer.events import topics
from stream_peer.kafka.client.control_events import apply_document, newest_document
from stream_peer.serve.feed_records import read_newest
from stream_peer.settings.feed.document import load_document, with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.settings.process import Settings, flag_of
from stream_peer.tools.demo.brokers import until
from stream_peer.tools.demo.feed import FEED, MALFORMED, RANDOM_EXPERT, SETTINGS, closing_tick, paced, read_events
from stream_peer.tools.demo.kafka import DemoKafka, connected, scrape_lag
from stream_peer.tools.demo.live_table import Glance, LiveTable
from stream_peer.tools.demo.worker import DemoWorker
from stream_peer.tools.replay.history import FeedHistory, Scores, brier

_SETTINGS_SECONDS = 30.0
_PROCESSED_SECONDS = 60.0
_SCRAPE_SECONDS = 1.0
_PAUSE_SECONDS = 0.1


class Wishes(NamedTuple):
    """What the visitor asked for."""

    pace: float
    report: Path
    keep: bool


class Demonstration:
    """One run of the demo against a broker that has the topics.

    Parameters
    ----------
    settings : Settings
        Of the worker and of the demo's own clients.
    worker : DemoWorker
        Started already.
    console : Console
        Where everything is shown.
    wishes : Wishes
        How long to feed, where to write the report, whether to stay.
    """

    def __init__(self, settings: Settings, worker: DemoWorker, console: Console, wishes: Wishes) -> None:
        self._settings = settings
        self._worker = worker
        self._console = console
        self._wishes = wishes
        self._table = LiveTable(console, time.monotonic)
        self._phase = "Starting the worker"
        self._sent = self._total = self._read = 0
        self._fed_seconds = 0.0
        self._lag: dict[str, int] = {}
        self._scrape_at = 0.0
        self.stays = False

    def run(self) -> None:
        """Run it to the end.

        Raises
        ------
        StreamPeerError
            If a step fails, or the outcome is not what a sound service gives.
        """
        with connected(self._settings) as kafka:
            with self._table:
                url = self._start_worker(kafka)
                self._feed(kafka, url)
            self._report(kafka)
            self._sum_up(kafka, kafka.counts())
            if self._wishes.keep:
                self._stay(url)
        self._worker.stop()

    def _start_worker(self, kafka: DemoKafka) -> str:
        for _ in self._worker.wait_ready():
            self._show(kafka)
            time.sleep(_PAUSE_SECONDS)
        self._phase = "Applying settings"
        apply_document(self._settings, with_method(SETTINGS, NEWEST_METHOD))
        until(kafka.is_configured, _SETTINGS_SECONDS, "the settings did not reach every partition", self._worker.check)
        return self._worker.url() or ""

    def _feed(self, kafka: DemoKafka, url: str) -> None:
        events = read_events()
        self._phase, self._total, start = "Feeding", len(events), time.monotonic()
        for due in paced(events, self._wishes.pace, time.monotonic):
            kafka.send(due)
            self._sent += len(due)
            self._fed_seconds = time.monotonic() - start
            self._take_up(kafka, url)
        self._phase = "Finishing"
        kafka.tell_time(closing_tick(events))

        def processed() -> bool:
            return not self._take_up(kafka, url) and kafka.is_processed()

        what = "the worker did not process all events"
        until(processed, _PROCESSED_SECONDS, what, self._worker.check, lambda: (self._read, self._lag))
        self._phase, self._lag = "Done", {}
        self._show(kafka)

    def _take_up(self, kafka: DemoKafka, url: str) -> int:
        """Read what there is and show it, now and then with the worker's lag; how many records it was."""
        self._worker.check()
        records = kafka.read()
        self._read += records
        if time.monotonic() >= self._scrape_at:
            self._lag = scrape_lag(url)
            self._scrape_at = time.monotonic() + _SCRAPE_SECONDS
        self._show(kafka)
        return records

    def _show(self, kafka: DemoKafka) -> None:
        feed = kafka.history.feeds.get(FEED) or FeedHistory(FEED)
        resolved = feed.resolved()
        mix = [brier(one.forecast.mix, one.outcome) for one in resolved]
        mean = [brier(one.forecast.mean, one.outcome) for one in resolved]
        self._table.show(
            Glance(
                phase=self._phase,
                sent=self._sent,
                total=self._total,
                events_per_second=self._sent / self._fed_seconds if self._fed_seconds else 0.0,
                lag=self._lag,
                questions=sum(forecast.state != "annulled" for forecast in feed.forecasts.values()),
                dead_letters=len(kafka.history.dead_letters),
                weights=feed.weights,
                resolved=len(resolved),
                mix_loss=sum(mix) / len(mix) if mix else None,
                mean_loss=sum(mean) / len(mean) if mean else None,
            )
        )

    def _report(self, kafka: DemoKafka) -> None:
        from stream_peer.settings.feed.document import load_document
        from stream_peer.tools.report.report import render_report

        path = self._wishes.report
        try:
            path.write_text(
                render_report(kafka.history, settings=load_document(SETTINGS, origin="the demo")), encoding="utf-8"
            )
        except MissingExtraError as error:
            self._say(f"No report: {error}")
        except OSError as error:
            msg = f"the report could not be written to {path}: {error.strerror}"
            raise StreamPeerError(msg) from error
        else:
            self._say(f"Report: {path.resolve()}")

    def _sum_up(self, kafka: DemoKafka, counts: dict[str, int]) -> None:
        """Say how the mix did and check that everything came through."""
        feed = kafka.history.feeds.get(FEED) or FeedHistory(FEED)
        scores = feed.scores()
        for text in verdict_lines(scores) if scores else ["No outcome was revealed."]:
            self._say(text)
        if feed.weights is not None:
            shares = {expert.id: expert.mix for expert in feed.weights.experts}
            equal = 1.0 / max(len(shares), 1)
            self._say(f"The random expert's weight: {shares.get(RANDOM_EXPERT, 0.0):.4f} (equal weights: {equal:.4f})")
        letters = sorted(letter.reason for letter in kafka.history.dead_letters)
        self._say(f"Malformed events in dead-letters: {len(letters)} of {MALFORMED} ({', '.join(letters) or 'none'})")
        self._say("Records on each topic: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
        check_outcome(counts, letters)
        self._say("Every event was processed, and every topic but mixed-groups, which needs options, holds records.")

    def _stay(self, url: str) -> None:
        self.stays = True
        settings = self._settings
        prefix = f" --prefix {settings.prefix}" if settings.prefix else ""
        embedded = " --broker embedded" if settings.broker == "embedded" else ""
        ours = (
            sys.argv[0] if sys.argv[0].endswith("/stream-peer") and not shutil.which("stream-peer") else "stream-peer"
        )
        only = (
            " (an imitation in this process, for stream-peer and librdkafka clients)"
            if settings.broker == "embedded"
            else ""
        )
        self._say("Running on until Ctrl-C.")
        self._say(f"  Page:    {url}/")
        self._say(f"  Metrics: {url}/metrics")
        self._say(f"  Health:  {url}/healthz/ready")
        self._say(f"  Log:     {self._worker.log}")
        self._say(f"  Kafka:   {settings.bootstrap}{only}")
        self._say(f"  Watch:   {ours} tail {FEED} --bootstrap {settings.bootstrap}{prefix}{embedded}")
        if counts := other_partitions(settings):
            self._say(f"  Topics:  other partition counts than the default; workers and `topics` need {counts}")
        while True:
            self._worker.check()
            time.sleep(1.0)

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=not self._console.is_terminal)


def other_partitions(settings: Settings) -> str:
    """The flags of partition counts that are not the default."""
    chosen, usual = (msgspec.structs.asdict(one) for one in (settings.partitions, Settings().partitions))
    others = {name: number for name, number in chosen.items() if number != usual[name]}
    return " ".join(f"{flag_of(f'partitions.{name}')} {number}" for name, number in others.items())


def verdict_lines(scores: Scores) -> list[str]:
    """How the mix did against mean, median and the best expert, in lines."""
    rows = [("mix", scores.mix, ""), ("mix, stretched", scores.stretched, "")]
    rows += [("mean", scores.mean, ""), ("median", scores.median, "")]
    best = scores.best
    if best is not None:
        there = f"the mix on its {best.questions:,} questions: {best.mix_there:.4f}"
        note = f"  {best.expert_id}, known only in hindsight; {there}"
        rows.append(("best expert", best.loss, note))
    asked = f"{scores.questions:,} questions whose outcome was revealed"
    lines = [f"Mean squared loss of the scored forecasts on {asked} (smaller is better):"]
    return lines + [f"  {name:<15} {loss:.4f}{note}" for name, loss, note in rows]


def check_outcome(counts: dict[str, int], reasons: Sequence[str]) -> None:
    """Refuse an outcome that a sound service does not give.

    Raises
    ------
    StreamPeerError
        If a topic is empty, or other than the malformed events were refused.
    """
    # No question of the demo has options or thresholds.
    empty = [name for name, count in counts.items() if not count and name not in topics.KEYED_BY_GROUP]
    if empty:
        msg = f"nothing arrived on {', '.join(empty)}"
        raise StreamPeerError(msg)
    if len(reasons) != MALFORMED:
        msg = f"{len(reasons)} events were refused, {MALFORMED} are malformed: {', '.join(reasons)}"
        raise StreamPeerError(msg)


_LINES = 10


def send(settings: Settings, pace: float) -> None:
    """Send the demo's events within ``pace`` seconds, and say how far it is; nothing if they were sent before.

    Raises
    ------
    SettingsError
        If the feed has not the settings applied that its events need.
    BrokerUnavailableError, NotAuthorisedError, TopicsError
        If the deployment's topics cannot be used.
    """
    applied = newest_document(settings)
    _check_rounds({} if applied is None else applied.document)
    if FEED in read_newest(settings):
        click.echo(f"The feed {FEED} has weights already: its events were sent before, and are not sent again.")
        return
    with connected(settings) as kafka:
        _send(kafka, pace)


def _check_rounds(document: Mapping[str, Any]) -> None:
    """Refuse settings by which all events of the feed fall into a round or two, from which nothing could be learned."""
    wanted, given = load_document(SETTINGS).of(FEED).round_every, load_document(document).of(FEED).round_every
    if given != wanted:
        text = SETTINGS["feeds"][FEED]["round_every"]
        message = f"the demo's events need {text}: put it into the settings file, then run `stream-peer settings apply`"
        raise SettingsError([SettingFault(f"feeds.{FEED}.round_every", "applied last", message)])


def _send(kafka: DemoKafka, pace: float) -> None:
    events = read_events()
    sent, said = 0, 0
    click.echo(f"Sending {len(events):,} events of the feed {FEED} within {pace:g} s.")
    for due in paced(events, pace, time.monotonic):
        kafka.send(due)
        sent += len(due)
        if sent * _LINES // len(events) > said:
            said = sent * _LINES // len(events)
            click.echo(f"{sent:,} of {len(events):,} events are sent.")
        time.sleep(_PAUSE_SECONDS)
    signed = kafka.tell_time(closing_tick(events))
    closing = (
        "" if signed else " Without signing_key_file the demo sends no tick: the workers close the questions later."
    )
    click.echo(f"All are sent.{closing} Watch: stream-peer tail {FEED}")
