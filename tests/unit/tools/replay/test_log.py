import errno
from collections.abc import Iterator

import pytest

from stream_peer.errors import UnwritableFileError
from stream_peer.log.stage import LogRecord
from stream_peer.tools.replay.log import KeptLog

RECORDS = [LogRecord(n, 7 * n, b"econ", b"%d" % n * 10) for n in range(5)]


@pytest.fixture(params=[10, 1_000_000], ids=["on disk", "in memory"])
def log(request: pytest.FixtureRequest) -> Iterator[KeptLog]:
    kept = KeptLog(in_memory=request.param)
    yield kept
    kept.close()


def test_a_log_gives_back_what_it_was_given_as_far_as_asked_and_goes_on_after_it(log: KeptLog) -> None:
    for record in RECORDS[:3]:
        log.append(record)

    first, again = list(log.up_to(1)), list(log.up_to(9))
    log.append(RECORDS[3])

    assert first == RECORDS[:2]
    assert again == RECORDS[:3]
    assert list(log.up_to(3)) == RECORDS[:4]


def test_empty_keys_and_values_stay_what_they_are(log: KeptLog) -> None:
    odd = [LogRecord(0, 0, None, None), LogRecord(1, 0, b"", b"")]
    for record in odd:
        log.append(record)

    assert list(log.up_to(1)) == odd


def test_a_full_disk_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    log = KeptLog()

    def fail(_: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log._file, "write", fail)

    with pytest.raises(UnwritableFileError, match="No space left on device"):
        log.append(RECORDS[0])
    log.close()
