"""Which experts of a feed have series of their own."""

import math
from collections.abc import Iterable

from stream_peer.events.outputs import WeightedExpert

OTHER = "other"
"""The label of all experts without series."""


def expert_label(expert_id: str) -> str:
    r"""The label of an expert: its id, with a backslash before it where it could be taken for ``OTHER``.

    Examples
    --------
    >>> [print(expert_label(expert_id)) for expert_id in ("ann", "other", r"\other")]
    ann
    \other
    \\other
    [None, None, None]
    """
    return f"\\{expert_id}" if expert_id.lstrip("\\") == OTHER else expert_id


class TopExperts:
    """Which experts of a feed have series of their own. One that has stays until it falls well out of the top.

    Without this, two experts that take turns at the edge would start and end series at every scrape.
    """

    def __init__(self) -> None:
        self._shown: frozenset[str] = frozenset()

    def choose(self, leading: Iterable[WeightedExpert], count: int) -> list[WeightedExpert]:
        """The experts to show, at most ``count``, of those who lead, by weight."""
        ranked = list(leading)
        names = [expert.id for expert in ranked]
        staying = [name for name in names[: count + math.ceil(count / 4)] if name in self._shown][:count]
        joining = [name for name in names if name not in staying]
        self._shown = frozenset(staying + joining[: count - len(staying)])
        return [expert for expert in ranked if expert.id in self._shown]
