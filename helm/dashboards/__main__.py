"""``python -m helm.dashboards`` writes the dashboards that differ; with ``--check`` it only names them."""

import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from helm.dashboards import feed, forecasters, overview, service
from helm.dashboards.queries import check_states
from helm.dashboards.reading import DIRECTORY


def files() -> dict[str, str]:
    """Each dashboard's file name and content."""
    check_states()
    made = (forecasters, overview, feed, service)
    return {f"{module.__name__.rpartition('.')[2]}.json": _text(module.dashboard()) for module in made}


def _text(dashboard: Dashboard) -> str:
    for number, panel in enumerate(dashboard.panels or [], 1):
        panel.id_val = number
    return JSONEncoder(sort_keys=True, indent=2).encode(dashboard) + "\n"


def main(arguments: list[str]) -> int:
    """Write, or check; 1 if something differs from what it should be."""
    made = files()
    kept = {path.name: path.read_text(encoding="utf-8") for path in DIRECTORY.glob("*.json")}
    differing = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    if arguments == ["--check"]:
        for name in differing:
            sys.stderr.write(f"{name} is not what helm/dashboards makes: run `python -m helm.dashboards`\n")
        return 1 if differing else 0
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name in differing:
        if name in made:
            (DIRECTORY / name).write_text(made[name], encoding="utf-8")
        else:
            (DIRECTORY / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
