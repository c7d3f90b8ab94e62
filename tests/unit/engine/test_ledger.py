import numpy as np

from stream_peer.engine.contributions import contribution
from stream_peer.engine.ledger import Entry
from tests.unit.engine.sample_facts import METHOD, facts_of

FORECASTS = [0.9, 0.6, 0.2]


def test_a_round_replaces_that_of_its_boundary() -> None:
    entry = Entry()
    for boundary in (2, 1):
        entry.put(facts_of(FORECASTS, boundary=boundary))

    entry.put(facts_of([0.1, 0.2, 0.3], boundary=2))

    assert [facts.head.boundary for facts in entry.facts()] == [1, 2]
    latest = entry.latest()
    assert latest is not None
    assert latest.forecasts.tolist() == [0.1, 0.2, 0.3]
    assert entry.drop(2)
    assert not entry.drop(2)
    assert [facts.head.boundary for facts in entry.facts()] == [1]


def test_stored_entries_add_the_same() -> None:
    entry = Entry(weight=0.3, evidence=1, touched=77)
    for boundary in (1, 2):
        entry.put(facts_of(FORECASTS, boundary=boundary))

    again = Entry.decode(entry.encode())

    assert (again.weight, again.evidence, again.touched, again.rounds) == (0.3, 1, 77, entry.rounds)
    np.testing.assert_array_equal(contribution(again, METHOD).columns, contribution(entry, METHOD).columns)
