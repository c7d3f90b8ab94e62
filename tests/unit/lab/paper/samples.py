"""A result of a claim that is made up, to test what is done with results."""

from stream_peer.lab.paper.results import Area, Cells, ClaimCheck, Figure, Line, Result, Table

SEED = 2020
"""That of ``stream-peer paper``."""


def sample_result(number: int = 1, *, missed: bool = False) -> Result:
    checks = [
        ClaimCheck("slope<of>regret", "0.5", 0.48, 0.3, 0.7, "theory"),
        ClaimCheck("violations", "0", 3.0 if missed else 0.0, 0.0, 0.0, "by theory"),
    ]
    lines = [
        Line("peer", [10.0, 100.0, 1000.0], [3.0, 9.0, 30.0], [0.5, 1.0, 2.0]),
        Line("bound", [10.0, 1000.0], [10.0, 100.0], dashed=True),
    ]
    area = Area("expected", [10.0, 1000.0], [2.0, 20.0], [4.0, 40.0])
    cells = Cells("share", [0.1, 0.2], [0.5, 1.0, 1.5], [[0.0, 1.0], [0.5, 0.25], [0.0, 0.0]])
    return Result(
        number=number,
        title="Sub-linear & more",
        claim="Regret<is>sub-linear.",
        finding="It is.",
        checks=checks,
        figures=[
            Figure("one", "Regret", "It bends.", "questions T", "summed loss", lines, [area], log_x=True, log_y=True),
            Figure("two", "A map", "Dark is worse.", "error rate", "confidence", [], cells=cells),
        ],
        tables=[Table("Figures", ["T", "regret"], [["10", "3.0"]], note="Means.")],
    )
