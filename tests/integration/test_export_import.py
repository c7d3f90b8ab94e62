"""A feed moves to another cluster, and is filled from files, on real Kafka."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stream_peer.events import topics
from stream_peer.kafka.client.read import TopicPartition
from stream_peer.kafka.client.write import append_to_feed_log
from stream_peer.log.draws import fingerprint
from stream_peer.questions.moved import QuestionLine
from stream_peer.settings.process import read_secret
from stream_peer.tools.transfer.feed_file import Header, read_feed
from stream_peer.tools.transfer.feed_import import FeedFile, log_records, look_up
from tests.integration.support.brokers import Rung, RunningBroker, own_broker
from tests.integration.support.client import KafkaClient
from tests.integration.support.events import Event, at, crowd, forecast, milliseconds, now, question, resolution
from tests.integration.support.lives import DAY, Published, finish, kill, replayed
from tests.integration.support.service import Service, Shape, service
from tests.order_free import COMPARED

pytestmark = [pytest.mark.real_kafka]

SHAPE = Shape(questions=4, feeds=2)
GROWN = Shape(questions=6, feeds=3)
ASKED = "moving"
EXPERTS = 6
SETTINGS: dict[str, Any] = {"defaults": {"history": True, "vote_rule": "half", "guard": "off", "round_every": "2d"}}


class Clusters(NamedTuple):
    """The same deployment on two brokers, one with more partitions."""

    there: Service
    here: Service


@pytest.fixture(scope="module")
def other_kafka(kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClient]:
    """Another broker than that of the run."""
    if kafka.broker.rung is not Rung.JARS:
        pytest.skip(f"needs a second broker, and the run has the {kafka.broker.rung.value}")
    with own_broker(tmp_path_factory.mktemp("other") / "kafka") as broker:
        yield KafkaClient(RunningBroker(broker.bootstrap, Rung.JARS))


@pytest.fixture(scope="module")
def clusters(
    kafka: KafkaClient, other_kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clusters]:
    directory = tmp_path_factory.mktemp("clusters")
    with (
        service(kafka, directory / "there", shape=SHAPE, **SETTINGS) as there,
        service(other_kafka, directory / "here", shape=GROWN, **SETTINGS) as here,
    ):
        there.set_up(STREAM_PEER_INSTANCE="w1")
        here.set_up(STREAM_PEER_INSTANCE="w1")
        yield Clusters(there, here)


def past(feed: str) -> list[Event]:
    """Questions that were open on six days, one after the other; some are resolved, some are open still."""
    events: list[Event] = []
    for number in range(12):
        name, opens = f"{feed}-{number}", number * DAY
        events.append(question(name, feed, opens + 6 * DAY, opens_at=at(opens)))
        events += crowd(name, EXPERTS, opens + 1)
        events += crowd(name, EXPERTS - 2, opens + 3 * DAY, first=1)
        if number in (0, 2, 3):
            events.append(resolution(name, number % 2, opens + 7 * DAY))
    return sorted(events, key=lambda event: str(event.get("at", event.get("opens_at"))))


def to_come(feed: str) -> list[Event]:
    """News of questions of the past, of ones that were open, and of new ones."""
    start = 12 * DAY
    events = [
        *crowd(f"{feed}-10", EXPERTS, start + 3),
        forecast(f"{feed}-9", "e1", 0.97, 10.5 * DAY),
        forecast(f"{feed}-10", "e3", 0.03, 13.5 * DAY),
        resolution(f"{feed}-1", 1, start + 4),
        resolution(f"{feed}-3", "open", start + 5),
        resolution(f"{feed}-11", 0, start + 4 * DAY),
        question(f"{feed}-new", feed, start + 6 * DAY, opens_at=at(start)),
        *crowd(f"{feed}-new", EXPERTS + 1, start + 6),
    ]
    return sorted(events, key=lambda event: str(event.get("at", event.get("opens_at"))))


def control(feed: str, expert_id: str, **changes: Any) -> Event:
    return {"type": "expert", "feed": feed, "expert_id": expert_id, "at": at(0), **changes}


def live_and_export(there: Service, feed: str, file: Path) -> None:
    there.send([control(feed, "e2", team="red")], topics.CONTROL_EVENTS)
    there.settle()
    there.send(past(feed))
    finish(there, 12 * DAY)
    there.send([control(feed, "e5", excluded=True)], topics.CONTROL_EVENTS)
    there.settle()
    said = there.run("export", feed, "--out", str(file))
    assert f"Feed {feed} at revision " in said
    assert f"{EXPERTS} experts and 12 questions in " in said
    assert "12 questions with what was said of them" in said


def import_halfway(here: Service, file: Path) -> int:
    """Append half of the records, as an import that is interrupted does, and kill the worker; how many."""
    found = FeedFile(file, None, fingerprint(read_secret(here.settings)))
    landing = look_up(here.settings, found)
    place = TopicPartition(here.topic(topics.FEED_LOG), landing.partition)
    records = list(log_records(found.lines(), landing.import_id, milliseconds(now())))
    half = len(records) // 2
    append_to_feed_log(here.settings, place, records[:half])
    here.settle()
    kill(here)
    here.workers["w1"].wait_ready()
    return half


def test_a_feed_whose_import_was_interrupted_gives_what_is_order_free_on_another_broker_with_more_partitions(
    clusters: Clusters, tmp_path: Path
) -> None:
    there, here = clusters
    file = tmp_path / "asked.feed.gz"
    live_and_export(there, ASKED, file)

    half = import_halfway(here, file)
    said = here.run("import", str(file))
    here.settle()
    kill(here)
    here.workers["w1"].wait_ready()
    for cluster in clusters:
        cluster.send(to_come(ASKED))
        finish(cluster, 20 * DAY)

    assert f"Feed {ASKED}: import " in said
    assert f"Of an earlier attempt {half} records stood there." in said
    numbers = [json.loads(message.value or b"")["src"] for message in here.read(topics.FEED_LOG)]
    moved = [number for topic, _, _, number, _ in numbers if topic.startswith("import/")]
    assert moved == list(range(len(moved)))
    theirs, ours = (Published(cluster).order_free(ASKED) for cluster in clusters)
    for topic in COMPARED:
        assert ours[topic] == theirs[topic]
    assert {"-1", "-3", "-9", "-10", "-11", "-new"} <= set(ours[topics.REFERENCE_ANSWERS])
    assert Published(here).contradictions(ASKED) == []
    assert here.dead_letters() == {}


def test_a_feed_is_not_imported_over_one_that_knows_questions(clusters: Clusters, tmp_path: Path) -> None:
    there, here = clusters
    file = tmp_path / "again.feed.gz"
    feed = "again"
    live_and_export(there, feed, file)

    refused = there.command("import", str(file))
    renamed_ = there.run("import", str(file), "--as", "twin")
    there.settle()

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "knows questions already" in refused.stderr
    assert "Feed twin: import " in renamed_
    assert here.command("import", str(file), "--other-secret", STREAM_PEER_PREFIX="nowhere-").returncode == 78
    weights = there.weights("twin")
    assert (weights["questions"], weights["resolved"]) == (
        there.weights(feed)["questions"],
        there.weights(feed)["resolved"],
    )


def test_another_secret_or_another_meaning_is_refused_before_anything_is_written(
    clusters: Clusters, tmp_path: Path
) -> None:
    there, _ = clusters
    file, secret = tmp_path / "strange.feed.gz", tmp_path / "secret"
    secret.write_text("another one")
    live_and_export(there, "strange", file)
    ends = there.kafka.end_offsets(there.topic(topics.CONTROL_EVENTS))

    foreign = there.command("import", str(file), "--as", "s2", STREAM_PEER_SECRET_FILE=str(secret))
    lines = list(read_feed(file))
    log_loss = tmp_path / "log.feed.gz"
    rewrite(log_loss, lines, loss="log")
    meaning = there.command("import", str(log_loss), "--as", "s3")

    assert (foreign.returncode, meaning.returncode) == (78, 78)
    assert "--other-secret" in foreign.stderr
    assert "feeds.s3.loss (applied here): is 'squared', the feed was made with 'log'" in meaning.stderr
    assert there.kafka.end_offsets(there.topic(topics.CONTROL_EVENTS)) == ends


def rewrite(file: Path, lines: Iterable[Any], **meaning: Any) -> None:
    """A file whose feed was made under other settings."""
    import msgspec

    from stream_peer.tools.transfer.feed_file import write_feed

    changed = [
        msgspec.structs.replace(line, meaning={**line.meaning, **meaning}) if isinstance(line, Header) else line
        for line in lines
    ]
    write_feed(file, changed)


def test_pseudonyms_leave_no_id_in_the_file_and_the_feed_goes_on_under_them(clusters: Clusters, tmp_path: Path) -> None:
    import gzip

    there, here = clusters
    file, key = tmp_path / "masked.feed.gz", tmp_path / "key"
    key.write_text("a key that nobody guesses")
    feed = "masked"
    there.send([*past(feed)])
    finish(there, 12 * DAY)

    there.run("export", feed, "--out", str(file), "--pseudonyms", str(key), "--pseudonym-questions")
    here.run("import", str(file))
    here.settle()

    text = gzip.decompress(file.read_bytes())
    assert not [name for name in (*(f'"e{n}"' for n in range(EXPERTS)), f"{feed}-") if name.encode() in text]
    experts = [expert["id"] for expert in here.weights(feed)["experts"]]
    assert len(experts) == EXPERTS
    assert all(expert.startswith("e-") for expert in experts)
    assert len([line for line in read_feed(file) if isinstance(line, QuestionLine)]) == 12


def test_a_feed_that_was_filled_from_a_file_goes_on_live(live: Service, tmp_path: Path) -> None:
    feed = "backfilled"
    history, file = tmp_path / "history.jsonl", tmp_path / "history.feed.gz"
    begins = now() - 20 * DAY
    before: list[Event] = []
    for number in range(8):
        name, opens = f"{feed}-{number}", begins + number * DAY
        before.append(question(name, feed, opens + 2 * DAY, opens_at=at(opens)))
        before += crowd(name, EXPERTS, opens + 1)
        before.append(resolution(name, number % 2, opens + 3 * DAY))
    before.append(question(f"{feed}-open", feed, now() + 30 * DAY, opens_at=at(begins)))
    before += crowd(f"{feed}-open", EXPERTS, begins + 1)
    history.write_text("".join(json.dumps(event) + "\n" for event in before))

    live.run("replay", str(history), "--export", f"{feed}={file}")
    live.run("import", str(file))
    live.settle()
    kill(live)
    live.workers["w1"].wait_ready()
    ends = now()
    after = [
        *crowd(f"{feed}-open", EXPERTS + 1, ends - 1),
        resolution(f"{feed}-open", 1, ends),
        resolution(f"{feed}-0", "open", ends),
    ]
    live.send(after)
    live.settle()
    live.tick(milliseconds(ends + 2 / 3600))  # the close, when the outcome came, and its grace
    live.settle()

    published = Published(live)
    answer = published.answers(feed)[f"{feed}-open"]
    assert (answer["state"], answer["outcome"], answer["experts"]) == ("resolved", 1, EXPERTS + 1)
    expected = replayed([*before, *after], feed)
    ours = published.order_free(feed)
    assert ours[topics.WEIGHTS] == expected[topics.WEIGHTS]
    assert ours[topics.PEER_LOSSES] == expected[topics.PEER_LOSSES]
    assert published.contradictions(feed) == []
