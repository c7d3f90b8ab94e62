"""What follows from the code: schemas, contract, tables and pages of the reference, pictures.

Each module makes the files that it is named after, as text; ``docs/generate.py`` writes them.
"""

from pathlib import Path

from docs.generator import (
    asyncapi,
    chart_values,
    client_outputs,
    kafka_plan,
    life,
    message_schemas,
    metrics,
    notebook,
    numerics,
    state_machines,
    tables,
)

ROOT = Path(__file__).parents[2]


def files() -> dict[str, str]:
    """Every generated file: its path in the repository and its content."""
    return {
        **message_schemas.files(),
        **asyncapi.files(ROOT),
        **tables.files(ROOT),
        **numerics.files(ROOT),
        **life.files(ROOT),
        **metrics.files(),
        **notebook.files(ROOT),
        **chart_values.files(ROOT),
        **client_outputs.files(ROOT),
        **kafka_plan.files(),
        **state_machines.files(),
    }
