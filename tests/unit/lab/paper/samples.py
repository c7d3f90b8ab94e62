"""Results of claims: one that is made up, to test what is done with results, and real ones, each re-run once."""

from functools import cache

from stream_peer.lab.paper.results import Area, Cells, Check, Figure, Line, Result, Size, Table
from stream_peer.lab.paper.run import rerun

SEED = 2020


@cache
def quick_result(number: int) -> Result:
    """A claim, re-run as ``stream-peer paper --quick`` does, in this process."""
    return rerun(number, Size.QUICK, SEED).result


def sample_result(number: int = 1, *, missed: bool = False) -> Result:
    checks = [
        Check("slope<of>regret", "0.5", 0.48, 0.3, 0.7, "theory"),
        Check("violations", "0", 3.0 if missed else 0.0, 0.0, 0.0, "by theory"),
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
