import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stream_peer.errors import BrokerUnavailableError, FeedTransferError, NotCaughtUpError
from stream_peer.events.feed_log import FeedLogRecord, Round, Source, read_feed_log
from stream_peer.events.incoming import FeedImport
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.client.control_events import Applied, Written
from stream_peer.kafka.client.read import TopicPartition
from stream_peer.log.draws import fingerprint
from stream_peer.log.stage import LogRecord
from stream_peer.questions.moved import QuestionLine
from stream_peer.questions.state import Stub, encode_stub
from stream_peer.settings.process import Settings
from stream_peer.tools.transfer import feed_export, feed_import
from stream_peer.tools.transfer.feed_file import Header, Line, RecordLine, read_feed, write_feed
from tests.feed_histories import changed, folded, log_of, outcome, round_of
from tests.feed_transfers import PAST, exported_lines
from tests.unit.cli.support import run
from tests.unit.tools.replay.file_lines import season

Capture = pytest.CaptureFixture[str]


def lines(secret: bytes = b"", events: Sequence[FeedLogRecord] = PAST, **header: Any) -> list[Line]:
    """A feed that was made with this secret."""
    first, *rest = exported_lines(events)
    return [msgspec.structs.replace(first, secret=fingerprint(secret), **header), *rest]


def question_line(question_id: str) -> QuestionLine:
    return QuestionLine(question_id=question_id, clock=0, stored=encode_stub(Stub("f", None, None)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "f.feed.gz"
    write_feed(written, lines())
    return written


class Cluster:
    """The feed-log and control-events, as the commands read and write them; ``breaks_after`` so many records."""

    def __init__(self) -> None:
        self.log: list[LogRecord] = []
        self.events: list[FeedImport] = []
        self.document: Applied | None = None
        self.breaks_after: int | None = None

    def append(self, _: Settings, place: TopicPartition, records: Iterable[LogRecord], __: object) -> int:
        assert place.partition == partition_of("f", 4)
        written = 0
        for record in islice(records, self.breaks_after):
            self.log.append(record._replace(offset=len(self.log)))
            written += 1
        if written == self.breaks_after:
            raise BrokerUnavailableError("no more")
        return written

    def write(self, _: Settings, parts: list[FeedImport]) -> list[Written]:
        self.events += parts
        return [Written(5, 17 + number) for number in range(len(parts))]

    def parts(self, _: Settings, import_id: str) -> set[tuple[int | None, int]]:
        return {(event.partition, event.part) for event in self.events if event.import_id == import_id}

    def newest(self, _: Settings) -> Applied | None:
        return self.document

    def partitions(self, _: None, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for partition in range(4)]

    def read(self, _: object, __: object) -> Iterator[list[LogRecord]]:
        if self.log:
            yield self.log

    @contextmanager
    def groupless_reader(self, _: Settings) -> Iterator[None]:
        yield


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster in which nothing is stored yet, and no settings were applied."""
    made = Cluster()
    monkeypatch.setattr(feed_import, "append_to_feed_log", made.append)
    monkeypatch.setattr(feed_import, "write_import", made.write)
    monkeypatch.setattr(feed_import, "import_parts", made.parts)
    monkeypatch.setattr(feed_import, "newest_document", made.newest)
    monkeypatch.setattr(feed_import, "partitions_of", made.partitions)
    monkeypatch.setattr(feed_import, "read_to_end", made.read)
    monkeypatch.setattr(feed_import, "groupless_reader", made.groupless_reader)
    return made


def exporting(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
    def export(_: Settings, feed: str) -> Iterator[Line]:
        assert feed == "f"
        if error is not None:
            raise error
        return iter(lines())

    monkeypatch.setattr(feed_export, "export_feed", export)


def test_export_writes_a_file_and_says_what_is_in_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    exporting(monkeypatch)
    file = tmp_path / "f.gz"

    ended = run(capsys, "export", "f", "--out", str(file))

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(
        "Feed f at revision 12: 4 experts and 8 questions in 13 records of its log, 0 questions"
    )
    assert list(read_feed(file)) == lines()


def test_pseudonyms_are_the_same_for_the_same_key(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    exporting(monkeypatch)
    key = tmp_path / "key"
    key.write_text("a key of some length\n")
    files = [tmp_path / "one.gz", tmp_path / "two.gz"]

    for file in files:
        assert run(capsys, "export", "f", "--out", str(file), "--pseudonyms", str(key)).code == 0

    one, two = (file.read_bytes() for file in files)
    assert one == two
    text = gzip.decompress(one)
    assert not [name for name in (b"ann", b"bob", b"cyd", b"dan", b"red") if b'"%b"' % name in text]
    assert b'"question_id":"q1"' in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pseudonym-questions"], "--pseudonyms KEYFILE"),
        (["--pseudonyms", "missing"], "missing"),
        (["--pseudonyms", "short"], "at least 16"),
    ],
)
def test_pseudonyms_need_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, arguments: list[str], message: str
) -> None:
    exporting(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("key")

    ended = run(capsys, "export", "f", "--out", "f.gz", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not Path("f.gz").exists()


@pytest.mark.parametrize(
    ("error", "code"), [(FeedTransferError("there is no feed f"), 2), (NotCaughtUpError("3 records behind"), 69)]
)
def test_an_export_that_fails_is_a_sentence_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, error: Exception, code: int
) -> None:
    exporting(monkeypatch, error)

    ended = run(capsys, "export", "f", "--out", str(tmp_path / "f.gz"))

    assert ended == (code, "", f"stream-peer: {error}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["-", "/dev/null"])
def test_what_is_no_file_is_not_replaced_by_an_export(
    capsys: Capture, tmp_path: Path, history: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    exporting(monkeypatch)
    monkeypatch.chdir(tmp_path)

    exported = run(capsys, "export", "f", "--out", target)
    replayed = run(capsys, "replay", str(history), "--export", f"f={target}")

    assert (exported.code, replayed.code) == (2, 2)
    assert f"{target} is no file that can be replaced" in exported.err
    assert f"{target} is no file that can be replaced" in replayed.err
    assert not Path("/dev/null").is_file()
    assert not (tmp_path / "-").exists()


def test_import_appends_the_log_of_the_feed_and_says_where(capsys: Capture, file: Path, cluster: Cluster) -> None:
    ended = run(capsys, "import", str(file))

    assert (ended.code, ended.err) == (0, "")
    import_id = re.search(r"import ([0-9a-f]{12})", ended.out)
    assert import_id is not None
    records = [read_feed_log(record.value) for record in cluster.log]
    origin = f"import/{import_id[1]}"
    assert [record.src for record in records] == [Source(origin, 0, 0, number, 0) for number in range(len(PAST))]
    assert [replace(record, src=PAST[0].src) for record in records] == PAST
    assert [record.timestamp for record in cluster.log] == [record.timestamp for record in log_of(PAST)]
    assert f"Feed f: import {import_id[1]}, 13 records appended to partition " in ended.out
    assert "what they refuse becomes a dead letter, import-refused." in ended.out


@pytest.mark.parametrize("breaks_after", [1, 5, 13])
def test_an_import_that_was_interrupted_goes_on_and_adds_nothing_twice(
    capsys: Capture, tmp_path: Path, cluster: Cluster, breaks_after: int
) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, [*lines(), question_line("q1")])
    cluster.breaks_after = breaks_after
    broken = run(capsys, "import", str(file))
    cluster.breaks_after = None
    nothing = list(cluster.events)

    again = run(capsys, "import", str(file))
    once_more = run(capsys, "import", str(file))

    assert (broken.code, nothing) == (69, [])
    assert f"Of an earlier attempt {breaks_after} records stood there" in again.out
    assert "0 records appended" in once_more.out
    assert [read_feed_log(record.value).src.offset for record in cluster.log] == list(range(13))
    assert len(cluster.events) == 1


def test_after_a_deletion_the_same_file_can_be_imported_again(capsys: Capture, file: Path, cluster: Cluster) -> None:
    first = run(capsys, "import", str(file))
    deleted = log_of([changed(delete=True)], len(cluster.log))
    cluster.log += deleted

    second = run(capsys, "import", str(file))

    assert (first.code, second.code) == (0, 0)
    assert len(cluster.log) == 2 * 13 + 1
    assert len({read_feed_log(record.value).src.topic for record in cluster.log} - {"forecast-events"}) == 2


def test_a_large_round_is_cut_as_the_question_stage_cuts_it(
    capsys: Capture, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f.gz"
    forecasts = {f"e{number:04}": 0.5 for number in range(2_000)}
    write_feed(file, lines(events=[round_of("big", forecasts), outcome("big", 1)]))
    monkeypatch.setattr("stream_peer.questions.rounds.MAX_RECORD_BYTES", 16_000)

    assert run(capsys, "import", str(file)).code == 0

    here, _ = folded(cluster.log)
    assert len(cluster.log) > 2
    assert here.feeds.feed("f").roster.experts == sorted(forecasts)
    assert [read_feed_log(record.value).src.offset for record in cluster.log] == list(range(len(cluster.log)))


def test_an_import_with_a_line_missing_is_refused(capsys: Capture, file: Path, cluster: Cluster) -> None:
    assert run(capsys, "import", str(file)).code == 0
    del cluster.log[3]

    ended = run(capsys, "import", str(file))

    assert ended.code == 2
    assert "feed f has an import of which lines are missing; reset or delete it before" in ended.err


def test_import_under_another_name(
    capsys: Capture, file: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_import, "partition_of", lambda *_: partition_of("f", 4))

    assert run(capsys, "import", str(file), "--as", "g").code == 0

    assert {record.key for record in cluster.log} == {b"g"}
    assert {read_feed_log(record.value).feed for record in cluster.log} == {"g"}


@pytest.mark.parametrize("name", ["", "my feed", "a/b"])
def test_a_name_that_no_feed_can_have_is_wrong_usage(capsys: Capture, file: Path, cluster: Cluster, name: str) -> None:
    assert run(capsys, "import", str(file), "--as", name).code == 2
    assert cluster.log == []


def test_a_file_that_is_no_exported_feed_is_wrong_usage(capsys: Capture, tmp_path: Path, cluster: Cluster) -> None:
    other = tmp_path / "other"
    other.write_text("{}")

    ended = run(capsys, "import", str(other))

    assert ended.code == 2
    assert ended.err.startswith(f"stream-peer: {other} is no exported feed, or a damaged one: Not a gzip")
    assert cluster.log == []


def test_a_file_that_breaks_off_is_refused_before_anything_is_sent(
    capsys: Capture, tmp_path: Path, cluster: Cluster
) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, lines())
    text = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(text[:-2])))

    ended = run(capsys, "import", str(file))

    assert (ended.code, cluster.log) == (2, [])
    assert "breaks off" in ended.err


def test_another_secret_is_refused_unless_that_is_meant(capsys: Capture, tmp_path: Path, cluster: Cluster) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, lines(b"theirs", forgotten=[b"0123456789abcdef"]))

    refused = run(capsys, "import", str(file))
    nothing = list(cluster.log)
    meant = run(capsys, "import", str(file), "--other-secret")

    assert (refused.code, nothing) == (78, [])
    assert f"that of the feed was {fingerprint(b'theirs')}" in refused.err
    assert (meant.code, len(cluster.log)) == (0, 13)
    assert "1 ids that were erased there are not recognised" in meant.err


def test_who_was_forgotten_is_told_to_every_partition(capsys: Capture, tmp_path: Path, cluster: Cluster) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, lines(forgotten=[b"0123456789abcdef"]))

    assert run(capsys, "import", str(file)).err == ""
    assert [event.partition for event in cluster.events] == [0, 1, 2, 3]
    here, _ = folded(cluster.log)
    assert here.feeds.feed("f").roster.erased == {b"0123456789abcdef"}


def test_a_feed_that_knows_questions_is_not_imported_over(capsys: Capture, file: Path, cluster: Cluster) -> None:
    known = log_of([round_of("own", {"ann": 0.5})])
    cluster.log += known

    ended = run(capsys, "import", str(file))

    assert (ended.code, cluster.log) == (2, known)
    assert "feed f knows questions already; reset or delete it before, or import under another name: --as" in ended.err


def test_settings_that_give_another_meaning_are_named_one_by_one(capsys: Capture, file: Path, cluster: Cluster) -> None:
    document = {"defaults": {"loss": "log"}, "feeds": {"f": {"min_experts": 5, "grace": "9s"}}}
    cluster.document = Applied(document, "0", 0, 0)

    ended = run(capsys, "import", str(file))

    assert (ended.code, cluster.log) == (78, [])
    assert "feeds.f.loss (applied here): is 'log', the feed was made with 'squared'" in ended.err
    assert "feeds.f.min_experts (applied here): is 5, the feed was made with 3; put that into the file" in ended.err
    assert "grace" not in ended.err


@pytest.fixture
def history(tmp_path: Path) -> Path:
    written = tmp_path / "history.jsonl"
    written.write_bytes(b"".join(value + b"\n" for value in season(questions=6)))
    return written


def test_a_replay_exports_the_feeds_that_are_asked_for(capsys: Capture, tmp_path: Path, history: Path) -> None:
    file = tmp_path / "econ.gz"

    ended = run(capsys, "replay", str(history), "--question-partitions", "3", "--export", f"econ={file}")

    assert ended.code == 0
    assert f"→ {file} (" in ended.out
    header, *found = read_feed(file)
    assert isinstance(header, Header)
    assert (header.feed, sorted(header.forecasts), header.settings["defaults"]["history"]) == ("econ", [0, 1, 2], True)
    rounds = [line for line in found if isinstance(line, RecordLine) and isinstance(line.record, Round)]
    asked = {line.question_id for line in found if isinstance(line, QuestionLine)}
    assert {line.record.question_id for line in rounds if isinstance(line.record, Round)} == asked


@pytest.mark.parametrize("target", ["econ", "econ=", "=f.gz", "my feed=f.gz", "econ=missing/f.gz"])
def test_a_target_that_is_none_is_wrong_usage(
    capsys: Capture, tmp_path: Path, history: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(capsys, "replay", str(history), "--export", target).code == 2


def test_a_feed_that_the_files_do_not_hold_is_named(capsys: Capture, tmp_path: Path, history: Path) -> None:
    ended = run(capsys, "replay", str(history), "--export", f"sport={tmp_path / 'f.gz'}")

    assert ended.code == 2
    assert "there is no feed sport; its partition of the feed-log knows econ" in ended.err


def test_what_no_worker_goes_on_under_is_not_exported(capsys: Capture, tmp_path: Path, history: Path) -> None:
    ended = run(
        capsys, "replay", str(history), "--set", "method.learner=hedge", "--export", f"econ={tmp_path / 'f.gz'}"
    )

    assert ended.code == 78
    assert "method" in ended.err
    assert not (tmp_path / "f.gz").exists()
