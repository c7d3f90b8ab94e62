"""The private names that we rely on are there, and a change would be noticed."""

import pytest
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer

from stream_peer.errors import StateError
from stream_peer.kafka.worker import faust_bridge as contract


def test_the_installed_faust_is_the_one_we_know() -> None:
    assert contract.breaches() == []


def test_a_changed_signature_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contract.METHODS, (Consumer, "_new_offset"), ("self", "topic"))

    with pytest.raises(StateError, match=r"_new_offset takes \('self', 'tp'\), not \('self', 'topic'\)"):
        contract.check()


def test_a_missing_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contract.METHODS, (Recovery, "remaining"), ("self",))

    assert contract.breaches() == ["faust.tables.recovery.Recovery.remaining takes None, not ('self',)"]


def test_a_missing_attribute_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contract.ATTRIBUTES, Consumer, ("_unheard_of",))

    assert contract.breaches() == ["Consumer._unheard_of is gone"]


def test_a_missing_extension_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "COMPILED", "faust._cython.unheard_of")

    assert contract.breaches() == ["faust._cython.unheard_of is not compiled"]
