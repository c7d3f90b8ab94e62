import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_peer.errors import FeedTransferError, NotCaughtUpError
from stream_peer.events.incoming import FeedImport
from stream_peer.events.outputs import Weights
from stream_peer.kafka.client import control_events
from stream_peer.kafka.client.control_events import Applied, Written
from stream_peer.log.draws import fingerprint
from stream_peer.log.portable import FeedLine, Header, Line
from stream_peer.serve import weights_view
from stream_peer.settings.process import Settings
from stream_peer.tools.transfer import feed_export, feed_import
from stream_peer.tools.transfer.feed_file import read_feed, write_feed
from tests.feed_outputs import weights
from tests.unit.cli.support import run
from tests.unit.feeds.test_feed_import import exported
from tests.unit.tools.replay.file_lines import season

Capture = pytest.CaptureFixture[str]


def lines(secret: bytes = b"", **header: Any) -> list[Line]:
    """A feed that was made with this secret."""
    first, *rest = exported()
    return [msgspec.structs.replace(first, secret=fingerprint(secret), **header), *rest]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "f.feed.gz"
    write_feed(written, lines())
    return written


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[FeedImport]:
    """What is written to control-events; no feed has weights, no settings were applied."""
    events: list[FeedImport] = []

    def write(_: Settings, parts: list[FeedImport], __: object) -> list[Written]:
        events.extend(parts)
        return [Written(5, 17 + number) for number in range(len(parts))]

    def newest(_: Settings) -> dict[str, Weights]:
        return {}

    def document(_: Settings) -> None:
        return None

    @contextmanager
    def onlooker(_: Settings) -> Iterator[None]:
        yield

    def partitions(_: None, __: str) -> list[int]:
        return [0, 1, 2, 3]

    monkeypatch.setattr(feed_import, "write_import", write)
    monkeypatch.setattr(feed_import, "read_newest", newest)
    monkeypatch.setattr(feed_import, "newest_document", document)
    monkeypatch.setattr(feed_import, "onlooker", onlooker)
    monkeypatch.setattr(feed_import, "partitions_of", partitions)
    assert control_events.write_import is not write
    assert weights_view.read_newest is not newest
    return events


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
        "Feed f at revision 12: 4 experts, 8 questions in the ledger, 0 with what was said of them"
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


def test_import_sends_the_feed_and_says_where_it_stands(capsys: Capture, file: Path, sent: list[FeedImport]) -> None:
    ended = run(capsys, "import", str(file))

    assert (ended.code, ended.err) == (0, "")
    (event,) = sent
    assert (event.feed, event.part, event.parts, event.partition) == ("f", 0, 1, None)
    assert f"Feed f: import {event.import_id} (control-events 5, offset 17)." in ended.out
    assert "what they cannot take up is a dead letter, import-refused. Its last revision was 12" in ended.out


def test_import_under_another_name(capsys: Capture, file: Path, sent: list[FeedImport]) -> None:
    assert run(capsys, "import", str(file), "--as", "g").code == 0
    assert {event.feed for event in sent} == {"g"}


@pytest.mark.parametrize("name", ["", "my feed", "a/b"])
def test_a_name_that_no_feed_can_have_is_wrong_usage(
    capsys: Capture, file: Path, sent: list[FeedImport], name: str
) -> None:
    assert run(capsys, "import", str(file), "--as", name).code == 2
    assert sent == []


def test_a_file_that_is_no_exported_feed_is_wrong_usage(
    capsys: Capture, tmp_path: Path, sent: list[FeedImport]
) -> None:
    other = tmp_path / "other"
    other.write_text("{}")

    ended = run(capsys, "import", str(other))

    assert ended.code == 2
    assert ended.err.startswith(f"stream-peer: {other} is no exported feed, or a damaged one: Not a gzip")
    assert sent == []


def test_a_file_that_breaks_off_is_refused_before_anything_is_sent(
    capsys: Capture, tmp_path: Path, sent: list[FeedImport]
) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, lines())
    text = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(text[:-2])))

    ended = run(capsys, "import", str(file))

    assert (ended.code, sent) == (2, [])
    assert "breaks off" in ended.err


def test_another_secret_is_refused_unless_that_is_meant(
    capsys: Capture, tmp_path: Path, sent: list[FeedImport]
) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, lines(b"theirs", forgotten=[b"0123456789abcdef"]))

    refused = run(capsys, "import", str(file))
    nothing = list(sent)
    meant = run(capsys, "import", str(file), "--other-secret")

    assert (refused.code, nothing) == (78, [])
    assert f"that of the feed was {fingerprint(b'theirs')}" in refused.err
    assert (meant.code, len(sent)) == (0, 1)
    assert "who was forgotten there (1 ids) is not known again" in meant.err


def test_who_was_forgotten_is_told_to_every_partition(capsys: Capture, tmp_path: Path, sent: list[FeedImport]) -> None:
    file = tmp_path / "f.gz"
    write_feed(file, lines(forgotten=[b"0123456789abcdef"]))

    assert run(capsys, "import", str(file)).err == ""
    assert [event.partition for event in sent] == [None, 0, 1, 2, 3]


def test_a_feed_that_knows_questions_is_not_imported_over(
    capsys: Capture, file: Path, sent: list[FeedImport], monkeypatch: pytest.MonkeyPatch
) -> None:
    def newest(_: Settings) -> dict[str, Weights]:
        return {"f": weights(7, "ann", feed="f")}

    monkeypatch.setattr(feed_import, "read_newest", newest)

    ended = run(capsys, "import", str(file))

    assert (ended.code, sent) == (2, [])
    assert "feed f knows questions already; reset or delete it before, or import under another name: --as" in ended.err


def test_settings_that_give_another_meaning_are_named_one_by_one(
    capsys: Capture, file: Path, sent: list[FeedImport], monkeypatch: pytest.MonkeyPatch
) -> None:
    def applied(_: Settings) -> Applied:
        document = {"defaults": {"loss": "log"}, "feeds": {"f": {"min_experts": 5, "grace": "9s"}}}
        return Applied(document, "0", 0, 0)

    monkeypatch.setattr(feed_import, "newest_document", applied)

    ended = run(capsys, "import", str(file))

    assert (ended.code, sent) == (78, [])
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
    header, feed, *_ = read_feed(file)
    assert isinstance(header, Header)
    assert isinstance(feed, FeedLine)
    assert (header.feed, sorted(header.forecasts), header.settings["defaults"]["history"]) == ("econ", [0, 1, 2], True)
    assert feed.standing.revision == header.revision > 0


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
