import difflib
from typing import Any

import pytest

from stream_peer.events.near_names import near_names


def test_near_names_are_found_by_likeness_and_by_what_they_hold() -> None:
    known = ["fed-cut-june", "cpi-may", "eu-cpi"]

    assert near_names("fed-cut-jun", known) == ["fed-cut-june"]
    assert near_names("c", known) == ["cpi-may", "eu-cpi", "fed-cut-june"]
    assert near_names("CPI", known) == ["cpi-may", "eu-cpi"]
    assert near_names("zzz", known) == near_names("", known) == []


def test_likeness_of_thousands_of_long_names_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [f"{'ab' * 120}{number}" for number in range(1000)]

    def fail(*_: Any, **__: Any) -> list[str]:
        msg = "it would take minutes"
        raise AssertionError(msg)

    monkeypatch.setattr(difflib, "get_close_matches", fail)

    assert near_names(long[7][:-1], long)[:1] == [long[0]]
    assert near_names("ba" * 120, long) == []
