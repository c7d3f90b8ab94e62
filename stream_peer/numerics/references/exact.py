"""Numbers of experts as whole units of 2^-40, so that the sum over any set of experts is the same in any order."""

import numpy as np

from stream_peer.errors import FormulaInputError
from stream_peer.numerics.losses import BoolArray, FloatArray, IntArray, SmallIntArray, portable_log
from stream_peer.numerics.losses.arguments import unchecked

UNIT = float(2**40)
MOST_SURE = 0.48
"""Log odds are taken of probabilities clipped to within this distance from ½."""

_HALF = 2**39


def in_units(values: FloatArray, side: SmallIntArray) -> IntArray:
    """Values in units, at least one unit to the side on which each lies, so that no vote is rounded away."""
    whole = np.rint(values * UNIT).astype(np.int64)
    return np.where(whole == 0, side, whole)


def distances(forecasts: FloatArray, thresholds: FloatArray | None, side: SmallIntArray) -> IntArray:
    """Signed distances from the thresholds (without them ½) in units; 0 for those that do not vote."""
    line = _HALF if thresholds is None else np.rint(thresholds * UNIT).astype(np.int64)
    whole = np.rint(forecasts * UNIT).astype(np.int64) - line
    return np.where(whole == 0, side, whole)


def log_odds(forecasts: FloatArray) -> FloatArray:
    """``ln(p/(1-p))`` of forecasts clipped to [.02, .98]; of p and 1-p exactly opposite, on every processor alike."""
    sure = np.minimum(np.abs(forecasts - 0.5), MOST_SURE)
    return np.copysign(unchecked(portable_log)((0.5 + sure) / (0.5 - sure)), forecasts - 0.5)


def without_own(values: IntArray, teams: IntArray | None) -> IntArray:
    """Sum over the last axis less one's own value, or less those of one's team, for everybody in O(n)."""
    others: IntArray = np.add.reduce(values, axis=-1, keepdims=True) - values
    if teams is None:
        return others
    in_team = teams >= 0
    place, n_teams = _numbered(teams[in_team])
    members = np.moveaxis(values[..., in_team], -1, 0)
    of_team = np.zeros((n_teams, *values.shape[:-1]), dtype=np.int64)
    np.add.at(of_team, place, members)
    others[..., in_team] += np.moveaxis(members - of_team[place], 0, -1)
    return others


def team_numbers(teams: IntArray) -> tuple[IntArray, int]:
    """Each expert's team, numbered from 0, those in no team being one each; and how many numbers there may be."""
    in_team = teams >= 0
    place, n_teams = _numbered(teams[in_team])
    numbers = np.empty(len(teams), dtype=np.int64)
    numbers[in_team] = place
    alone = len(teams) - len(place)
    numbers[~in_team] = np.arange(n_teams, n_teams + alone)
    return numbers, n_teams + alone


def _numbered(names: IntArray) -> tuple[IntArray, int]:
    """Team numbers from 0 and how many there may be. Small ones are taken as they are, which spares sorting."""
    largest = int(np.maximum.reduce(names, initial=-1))
    if largest < 8 * names.size:
        return names, largest + 1
    known, place = np.unique(names, return_inverse=True)
    return place, known.size


def check_shape(name: str, values: FloatArray | IntArray | SmallIntArray | BoolArray, shape: tuple[int, ...]) -> None:
    """Refuse an array that does not broadcast to a shape."""
    found = values.shape
    if len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1], strict=False)):
        msg = f"{name} has the shape {found}, which does not fit {shape}"
        raise FormulaInputError(msg)


def check_coin(coin: int | SmallIntArray | IntArray, rounds: tuple[int, ...]) -> None:
    """Refuse coins that are not one for each round."""
    if not isinstance(coin, int):
        check_shape("coin", coin, rounds)
