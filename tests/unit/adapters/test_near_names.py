from stream_peer.adapters.near_names import near


def test_near_names_are_found_by_likeness_and_by_what_they_hold() -> None:
    known = ["fed-cut-june", "cpi-may", "eu-cpi"]

    assert near("fed-cut-jun", known) == ["fed-cut-june"]
    assert near("c", known) == ["cpi-may", "eu-cpi", "fed-cut-june"]
    assert near("CPI", known) == ["cpi-may", "eu-cpi"]
    assert near("zzz", known) == near("", known) == []
