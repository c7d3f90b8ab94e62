"""What ``stream-peer repair`` refuses before it asks a broker."""

import pytest

from tests.unit.cli.support import run

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("arguments", [(), ("--all", "3"), ("-1",), ("three",)])
def test_partitions_are_named_or_all_of_them(capsys: Capture, arguments: tuple[str, ...]) -> None:
    ended = run(capsys, "repair", *arguments)

    assert (ended.code, ended.out) == (2, "")


def test_without_a_signing_key_nothing_is_written(capsys: Capture) -> None:
    ended = run(capsys, "repair", "--all", "--bootstrap", "127.0.0.1:1")

    assert ended.code == 78
    assert "openssl rand -hex 32" in ended.err
