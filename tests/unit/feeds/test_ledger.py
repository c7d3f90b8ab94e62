import numpy as np

from stream_peer.feeds.contributions import contribution
from stream_peer.feeds.ledger import Entry
from stream_peer.feeds.scored import NONE
from stream_peer.feeds.store import stored_ledgers
from stream_peer.log.pieces import cut
from tests.unit.feeds.sample_facts import METHOD, facts_of

FORECASTS = [0.9, 0.6, 0.2]


def test_a_round_replaces_that_of_its_boundary() -> None:
    entry = Entry()
    for boundary in (2, 1):
        entry.put(facts_of(FORECASTS, boundary=boundary))

    entry.put(facts_of([0.1, 0.2, 0.3], boundary=2))

    assert [facts.boundary for facts in entry.facts()] == [1, 2]
    latest = entry.latest()
    assert latest is not None
    assert latest.forecasts.tolist() == [0.1, 0.2, 0.3]
    assert entry.drop(2)
    assert not entry.drop(2)
    assert [facts.boundary for facts in entry.facts()] == [1]


def test_stored_entries_add_the_same() -> None:
    entry = Entry(weight=0.3, evidence=1, touched=77)
    for boundary in (1, 2):
        entry.put(facts_of(FORECASTS, boundary=boundary))

    again = Entry.decode(entry.encode())

    assert (again.weight, again.evidence, again.touched, again.rounds) == (0.3, 1, 77, entry.rounds)
    np.testing.assert_array_equal(contribution(again, METHOD).columns, contribution(entry, METHOD).columns)


def test_an_entry_that_rests_on_its_state_record_says_the_same_and_goes_on() -> None:
    entry = Entry(weight=0.5, evidence=1, touched=9)
    entry.put(facts_of(FORECASTS, boundary=1))
    entry.put(facts_of(FORECASTS, boundary=2))
    before = entry.rounds, entry.encode()
    (record,) = cut(b"e", b"econ/q", entry.encode()).values()
    assert record is not None
    entry.rest_on(record)

    assert (entry.rounds, entry.encode()) == before
    assert entry.drop(1)
    assert entry.rounds == before[0][1:]
    assert Entry.decode(entry.encode()).rounds == entry.rounds


def test_a_scored_forecast_that_is_fixed_after_a_load_stays_when_rounds_follow() -> None:
    entry = Entry()
    (record,) = cut(b"e", b"econ/q", entry.encode()).values()
    assert record is not None
    entry.rest_on(record)

    entry.hold()
    entry.first_final = NONE
    entry.put(facts_of(FORECASTS, boundary=1))

    assert entry.first_final == NONE
    assert len(entry.rounds) == 1


def test_an_entry_that_is_loaded_is_in_memory_once() -> None:
    entry = Entry()
    entry.put(facts_of(FORECASTS, boundary=1))
    entries = {key: value for key, value in cut(b"e", b"econ/q", entry.encode()).items() if value is not None}

    loaded = stored_ledgers(entries)["econ"]["q"]

    assert isinstance(loaded, Entry)
    assert loaded._record is entries[b"e/econ/q"]
    assert loaded.rounds == entry.rounds


def test_a_scored_forecast_that_stands_among_the_rounds_is_stored_once_and_another_beside_them() -> None:
    entry = Entry()
    for boundary in (1, 2):
        entry.put(facts_of(FORECASTS, boundary=boundary))
    bare = len(entry.encode())
    entry.first_final, entry.revision = entry.rounds[1], 7
    once = entry.encode()
    entry.put(facts_of([0.1, 0.2, 0.3], boundary=2))
    twice = entry.encode()

    assert len(once) - bare < 4
    assert len(twice) - len(once) > len(entry.rounds[1])
    for stored in (once, twice):
        again = Entry.decode(stored)
        assert (again.first_final, again.revision) == (entry.first_final, 7)
        assert again.encode() == stored
    assert Entry.decode(once).first_final == Entry.decode(once).rounds[1]


def test_a_scored_forecast_outlasts_changes_of_an_entry_that_rests_on_its_state_record() -> None:
    for scored in (None, b"", facts_of(FORECASTS, boundary=2).pack()):
        entry = Entry()
        entry.put(facts_of(FORECASTS, boundary=1))
        entry.put(facts_of(FORECASTS, boundary=2))
        entry.first_final = scored
        (record,) = cut(b"e", b"econ/q", entry.encode()).values()
        assert record is not None

        entry.rest_on(record)
        assert entry.first_final == scored
        entry.put(facts_of([0.1, 0.2, 0.3], boundary=2))
        assert entry.first_final == scored
        assert entry.drop(2)
        assert (entry.first_final, len(entry.rounds)) == (scored, 1)
