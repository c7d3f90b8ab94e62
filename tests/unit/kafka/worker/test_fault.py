import os
import signal

import click
import pytest

from stream_peer.kafka.worker.process import fault_from


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: calls.append((pid, number)))
    return calls


def test_without_the_variable_nothing_happens(killed: list[tuple[int, int]]) -> None:
    fault_from({})("between-entries-and-head")

    assert killed == []


def test_the_process_kills_itself_at_the_place_when_it_comes_there_for_the_nth_time(
    killed: list[tuple[int, int]],
) -> None:
    arrive = fault_from({"STREAM_PEER_FAULT": "there:2"})

    arrive("there")
    arrive("elsewhere")
    assert killed == []
    arrive("there")

    assert killed == [(os.getpid(), signal.SIGKILL)]


def test_the_first_time_is_the_default(killed: list[tuple[int, int]]) -> None:
    fault_from({"STREAM_PEER_FAULT": "there"})("there")

    assert len(killed) == 1


@pytest.mark.parametrize("text", [":2", "there:soon"])
def test_a_fault_that_cannot_be_read_is_wrong_usage(text: str) -> None:
    with pytest.raises(click.UsageError, match="PLACE:N"):
        fault_from({"STREAM_PEER_FAULT": text})
