"""What tests of a feed's long life do again and again: pass time, compare whole histories, end a worker halfway."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stream_peer.events import topics
from stream_peer.log.stage import Output
from stream_peer.settings.feed.document import with_method
from stream_peer.settings.feed.model import NEWEST_METHOD
from stream_peer.tools.replay.files import FileLine
from stream_peer.tools.replay.replay import ReplayOptions, replay
from tests.integration.support.events import Event, at, forecast, milliseconds, question, resolution
from tests.integration.support.service import SECRET, Service, Stage
from tests.order_free import COMPARED, order_free

DAY = 24

LIVES = {"session": "20s", "rebalance_timeout": "24s"}
"""Settings: whoever is killed comes back as the same member of its groups; nobody waits for the end of a session."""

NUMBERS = range(8)
"""Of the questions of a ``life``."""

"""Output topics whose records ``order_free`` reads."""


def finish(service: Service, hours: float) -> None:
    """Everything sent is processed, then every question that closed by that hour is scored."""
    service.settle()
    service.tick(milliseconds(hours))
    service.settle()


def kill(service: Service) -> None:
    """End the worker without a word and start it again, as the same member of its groups."""
    service.workers["w1"].kill()
    service.start("w1", STREAM_PEER_INSTANCE="w1")


def stop(service: Service) -> None:
    """Stop the worker as an orchestrator does and start it again."""
    service.restart("w1", STREAM_PEER_INSTANCE="w1")


class Published:
    """What stands on the output topics at a moment, read once. Questions are named after their feed."""

    def __init__(self, service: Service) -> None:
        names = {service.topic(logical): logical for logical in COMPARED}
        read = service.kafka.read_together(list(names))
        self.records = {logical: read[name] for name, logical in names.items()}
        self._of: dict[str, dict[str, list[tuple[str, dict[str, Any]]]]] = {}

    def of(self, feed: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Every record of a feed, in order, by topic."""
        if feed not in self._of:
            self._of[feed] = self._read(feed)
        return self._of[feed]

    def _read(self, feed: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        named = f'"feed":"{feed}"'.encode()
        return {
            topic: [
                ((message.key or b"").decode(), json.loads(message.value))
                for message in messages
                if message.value and named in message.value
            ]
            for topic, messages in self.records.items()
        }

    def raw(self, feed: str) -> dict[str, list[tuple[bytes | None, bytes | None]]]:
        """Every record whose key begins with the feed's name, byte for byte, in order, by topic."""
        name = feed.encode()
        return {
            topic: [(message.key, message.value) for message in messages if (message.key or b"").startswith(name)]
            for topic, messages in self.records.items()
        }

    def last(self, feed: str) -> dict[str, dict[str, dict[str, Any]]]:
        """The last record of each key, whole, by topic."""
        return {topic: dict(records) for topic, records in self.of(feed).items()}

    def answers(self, feed: str) -> dict[str, dict[str, Any]]:
        """The last reference answer of each question."""
        return self.last(feed)[topics.REFERENCE_ANSWERS]

    def weights(self, feed: str) -> dict[str, Any]:
        """The newest weights."""
        return self.last(feed)[topics.WEIGHTS][feed]

    def order_free(self, feed: str) -> dict[str, dict[str, Any]]:
        """What is order-free of the last record of each key, with the feed's name taken off all names, by topic."""
        return {topic: renamed(topic, records, feed) for topic, records in self.last(feed).items()}

    def contradictions(self, feed: str) -> list[str]:
        """Where revisions of a key did not grow, or one revision has two contents; byte-equal repeats are none."""
        found = []
        for topic, records in self.of(feed).items():
            seen: dict[str, dict[int, Any]] = {}
            for key, value in records:
                known, revision = seen.setdefault(key, {}), value["revision"]
                if known.get(revision, value) != value:
                    found.append(f"{topic} {key}: two contents of revision {revision}")
                elif revision not in known and known and revision < max(known):
                    found.append(f"{topic} {key}: {revision} after {max(known)}")
                known[revision] = value
        return found


def renamed(topic: str, records: Mapping[str, Mapping[str, Any]], feed: str) -> dict[str, Any]:
    """What is order-free of a topic's records by key, with the feed's name taken off all names."""
    text = json.dumps({key: order_free(topic, record, mixes=False) for key, record in records.items()}, sort_keys=True)
    named: dict[str, Any] = json.loads(text.replace(feed, ""))
    return named


def replayed(events: Iterable[Event], feed: str, **settings: Any) -> dict[str, dict[str, Any]]:
    """What is order-free of a feed, by topic, after a replay of these events alone."""
    last: dict[str, dict[str, Any]] = {topic: {} for topic in COMPARED}

    def keep(output: Output) -> None:
        value = json.loads(output.value or b"{}")
        if output.topic in COMPARED and value.get("feed") == feed:
            last[output.topic][(output.key or b"").decode()] = value

    lines = [FileLine(str(number), json.dumps(event).encode()) for number, event in enumerate(events)]
    document = with_method({"defaults": {"vote_rule": "half", "guard": "off", **settings}}, NEWEST_METHOD)
    replay([lines], ReplayOptions(document=document, secret=SECRET.encode()), write=keep)
    return {topic: renamed(topic, records, feed) for topic, records in last.items()}


def last_values(service: Service, topic: str) -> dict[bytes, bytes]:
    """What compaction leaves of a topic: the last value of each key, if it has one."""
    last = {message.key or b"": message.value for message in service.kafka.read_all(topic)}
    return {key: value for key, value in last.items() if value is not None}


def state(service: Service, stage: Stage) -> dict[bytes, bytes]:
    """Entries of a stage's state as whoever starts next would recover them, of all partitions."""
    return {
        b"%d/%b" % (partition, key): value
        for partition, fold in service.kafka.states(service.settings.changelog(stage)).items()
        for key, value in fold.recovered().entries.items()
    }


def gauges(service: Service, feed: str) -> dict[tuple[Any, ...], float]:
    """Every sample that a worker shows of a feed, but for what it has counted since its start."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for sample in service.all_samples()
        if sample.labels.get("feed") == feed and not sample.name.endswith("_total")
    }


def without(record: Mapping[Any, Any], *names: Any) -> dict[Any, Any]:
    """A record without some of its fields."""
    return {name: value for name, value in record.items() if name not in names}


def probability(number: int, expert: int, change: int = 0) -> float:
    """Of an expert on a question, by their numbers, so that another feed can have the same; each change is another.

    Never does a coin, which differs from feed to feed, decide a tie: no mean of them is one half.
    """
    return ((31 * number + 17 * expert + 23 * change) % 89 + 5) / 100 + 0.0001 * (1 << expert % 6)


def panel(number: int, question_id: str, experts: Iterable[int], hours: float, change: int = 0) -> Iterator[Event]:
    """One forecast of each expert, within six minutes."""
    for expert in experts:
        yield forecast(question_id, f"e{expert}", probability(number, expert, change), hours + expert / 100)


def daily(number: int, question_id: str, start: float, days: Iterable[int]) -> Iterator[Event]:
    """Six experts who say something else every day, the first at its very end; from the fourth day on others join."""
    for day in days:
        experts = (*range(6), *range(10, 7 + day))
        for event in panel(number, question_id, experts, start + DAY * day, day):
            yield {**event, "at": at(start + DAY * day - int(event["expert_id"][1:]) / 100)}


def life(feed: str, start: float, closes: int, days: Iterable[int]) -> list[Event]:
    """Questions that close after so many days, with forecasts of these days, all by time."""
    events: list[Event] = []
    for number in NUMBERS:
        name = f"{feed}-q{number}"
        events += [question(name, feed, start + closes * DAY, opens_at=at(start), at=at(start))]
        events += daily(number, name, start, days)
    return sorted(events, key=lambda event: str(event["at"]))


def crowds(feed: str, start: float, numbers: Iterable[int]) -> Iterator[Event]:
    """Questions of one day."""
    for number in numbers:
        name = f"{feed}-q{number}"
        yield question(name, feed, start + DAY, opens_at=at(start))
        yield from panel(number, name, range(7), start)


def outcomes(feed: str, hours: float, told: Mapping[int, object]) -> Iterator[Event]:
    """Resolutions by the questions' numbers."""
    return (resolution(f"{feed}-q{number}", outcome, hours) for number, outcome in told.items())
