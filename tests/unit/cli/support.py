"""Calling the command line as a user does."""

from typing import NamedTuple

import pytest

from stream_peer.cli import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Ended:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Ended(ended.value.code, captured.out, captured.err)
