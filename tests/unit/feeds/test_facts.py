import numpy as np

from stream_peer.feeds.facts import boundary_of, losses_of, unpack
from tests.unit.feeds.sample_facts import METHOD, facts_of


def test_packed_facts_come_back_bit_for_bit() -> None:
    generator = np.random.default_rng(5)
    facts = facts_of(generator.random(50).tolist(), boundary=1_700_000_000_123)

    again = unpack(facts.pack())

    for name, value in facts._replace(losses=None)._asdict().items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
    np.testing.assert_array_equal(losses_of(again, METHOD), facts.losses)
    assert boundary_of(facts.pack()) == facts.head.boundary
    assert len(facts.pack()) <= 50 * 21 + 300
