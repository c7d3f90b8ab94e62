"""Of each question what every expert said in the round that is scored, picked from the records of ``peer-losses``."""

from collections.abc import Mapping

from stream_peer.events.outputs import PeerLosses, ScoredForecast


class ScoredRounds:
    """Keeps the records of ``peer-losses`` that may turn out to be those of a scored forecast, and drops all others.

    Which it is says ``scored`` of ``mixed-forecasts``. It may come before the record or after it: topics are read side
    by side. Until then a question keeps its first final round, and the newest content of each other one.
    """

    def __init__(self) -> None:
        self._rounds: dict[str, dict[int, PeerLosses]] = {}
        self._scored: dict[str, ScoredForecast] = {}

    def add(self, record: PeerLosses) -> None:
        """Take up a whole record, or one that was joined from its parts so far."""
        if not record.experts:
            return
        kept = self._rounds.setdefault(record.question, {})
        known = next((one for one in kept.values() if one.boundary == record.boundary), None)
        scored = self._scored.get(record.question)
        if known is None or known.revision == record.revision or _is_rather(record, known, scored):
            if known is not None:
                del kept[known.revision]
            kept[record.revision] = record
        self._settle(record.question)

    def name(self, question: str, scored: ScoredForecast) -> None:
        """The scored forecast of a question is known."""
        self._scored[question] = scored
        self._settle(question)

    def of(self, question: str) -> Mapping[str, float]:
        """What each expert said in the scored round; nothing if its record was not seen: a topic may be compacted."""
        if question not in self._scored:
            return {}
        return {one.id: one.probability for record in self._rounds.get(question, {}).values() for one in record.experts}

    def _settle(self, question: str) -> None:
        """Drop what is not of the scored round. A republished record has a higher revision and the same forecasts."""
        scored, kept = self._scored.get(question), self._rounds.get(question)
        if scored is not None and kept is not None:
            fit = {n: r for n, r in kept.items() if r.boundary == scored.boundary and n <= scored.revision}
            self._rounds[question] = fit


def _is_rather(record: PeerLosses, known: PeerLosses, scored: ScoredForecast | None) -> bool:
    """Whether a record, and not the one of the same boundary that is known, may be of the scored round."""
    if scored is not None:
        fits = record.revision <= scored.revision
        return fits and (record.revision > known.revision or known.revision > scored.revision)
    if record.final and known.final:
        return record.revision < known.revision
    return record.final or (not known.final and record.revision > known.revision)
