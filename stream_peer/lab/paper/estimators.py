"""Claim 6: how exact estimates of error rates are, with few outcomes and with none."""

import numpy as np

from stream_peer.lab.paper.group_estimates import (
    FIRST,
    SECOND,
    TIMES,
    group_checks,
    time_figure,
    two_groups,
    zeros_figure,
)
from stream_peer.lab.paper.panel_estimates import (
    N_VOTERS,
    SPREADS,
    class_checks,
    class_figure,
    even_voters,
    panel,
    panel_checks,
    panel_figure,
    panel_table,
    unlike_voters,
)
from stream_peer.lab.paper.results import Result, Size, shown
from stream_peer.lab.paper.revealed_estimates import revealed_checks, revealed_spreads, revealed_table


def estimators(rng: np.random.Generator, size: Size) -> Result:
    """Two groups at every share of zeros, panels of voters, and revealed outcomes."""
    quick = size is Size.QUICK
    groups = two_groups(rng, 100 if quick else 400)
    marks, panels = ((200, 1000), 16) if quick else ((200, 1000, 5000), 60)
    symmetric = {
        (name, zeros): panel(rng, even_voters(name, zeros), marks, panels) for name in SPREADS for zeros in (0.5, 0.1)
    }
    unlike = panel(rng, unlike_voters(), marks, panels)
    revealed = revealed_spreads(rng, 2000 if quick else 20_000)
    return Result(
        number=6,
        title="How exact estimates of error rates are",
        claim=(
            f"Theorem 7 estimates two groups' error rates ({FIRST:g} and {SECOND:g}) from three shares of yes, with "
            "an error of order 1/√T unless zeros and ones are equally frequent. Beside it the shortcut for groups "
            f"redrawn each question, leave-one-out moments of {N_VOTERS} voters (the service's default), their "
            "class-dependent form, and estimates from revealed outcomes."
        ),
        finding=(
            f"The corrected two-group estimate is off by {shown(float(groups.corrected[0, -1]))} at P0 = .1 and "
            f"{shown(float(groups.corrected[-1, -1]))} at P0 = .5 after {TIMES[-1]:,} questions, the printed one by "
            f"{shown(float(groups.printed[0, -1]))}; moments do not depend on P0."
        ),
        checks=[
            *group_checks(rng, groups, 400 if quick else 2000),
            *panel_checks(symmetric),
            *class_checks(unlike),
            *revealed_checks(revealed),
        ],
        figures=[time_figure(groups), zeros_figure(groups), panel_figure(symmetric), class_figure(unlike)],
        tables=[revealed_table(revealed), panel_table(symmetric, unlike)],
    )
