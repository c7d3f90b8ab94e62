"""An LLM panel: JSON lines, one an answer of a model, or one a question with the answers of all models.

===============  =====================================================================================================
field            meaning
===============  =====================================================================================================
``question``     id of the question (``question_id``, ``id``, ``market_id``)
``model``        the model that answers (``model_id``, ``llm``, ``agent``, ``expert``)
``probability``  of yes (``forecast``, ``prediction``, ``answer``, ``p``)
``forecasts``    instead of the two: an object of probabilities by model
``time``         when it answered (``at``, ``timestamp``, ``created_at``, ``date``)
``outcome``      optional (``resolution``, ``resolved_to``): yes, no, 0, 1, annulled or null
``closes``       optional (``closes_at``, ``close_time``); so are ``opens`` and ``resolved``, as of a table
===============  =====================================================================================================

A line without any answer describes its question.
"""

from stream_peer.tools.formats.adapter import Adapter, Columns, FormatOptions, check_named
from stream_peer.tools.formats.gathered import Gathered
from stream_peer.tools.formats.sources import ImportSources, SourceRow
from stream_peer.tools.formats.table import ROLES as OF_TABLE
from stream_peer.tools.formats.table import describe
from stream_peer.tools.formats.values import identity, moment_of, probability

ROLES = {
    **OF_TABLE,
    "question": ("question", "question_id", "id", "market_id"),
    "expert": ("model", "model_id", "llm", "agent", "expert"),
    "probability": ("probability", "forecast", "prediction", "answer", "p"),
    "forecasts": ("forecasts", "answers", "predictions"),
}


def read_llm_panel(sources: ImportSources, gathered: Gathered, options: FormatOptions) -> None:
    """Gather the answers of models. Each line has columns of its own: a file may have lines of all three kinds."""
    check_named(options.columns, sources)
    for source in sources.all:
        known: dict[frozenset[str], Columns] = {}

        def take(row: SourceRow, known: dict[frozenset[str], Columns] = known, name: str = source.name) -> None:
            there = frozenset(row.fields)
            if there not in known:
                known[there] = Columns(ROLES, options.columns, there, name)
            columns = known[there]
            question = identity(columns.get(row, "question"), "question")
            panel = columns.get(row, "forecasts")
            if isinstance(panel, dict):
                at = moment_of(columns.get(row, "time"))
                answers = {model: probability(answer, options.unit) for model, answer in panel.items()}
                for model, answer in answers.items():
                    gathered.forecast(question, identity(model, "model"), answer, at)
            elif columns.get(row, "expert") is not None or not columns.has("outcome"):
                expert = identity(columns.get(row, "expert"), "model")
                answer = probability(columns.get(row, "probability"), options.unit)
                gathered.forecast(question, expert, answer, moment_of(columns.get(row, "time")))
            describe(row, columns, gathered)

        gathered.each(sources.rows(source), take)


LLM_PANEL = Adapter(
    "JSON lines with question, model, probability and time, or with forecasts by model",
    read_llm_panel,
    ("columns", "unit"),
)
