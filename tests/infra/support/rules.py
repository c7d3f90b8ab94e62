"""Reading the rules as they lie in their files: alerts, and what is recorded for them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.infra.support.tools import ROOT

RULES = ROOT / "helm" / "stream-peer" / "rules"
FILES = (RULES / "recording.yaml", RULES / "alerts.yaml")

Rule = Mapping[str, Any]


def rules(files: tuple[Path, ...] = FILES) -> list[Rule]:
    """All rules of all groups."""
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return [rule for document in documents for group in document["groups"] for rule in group["rules"]]


def alerts() -> dict[str, Rule]:
    """Alerts by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def recorded() -> dict[str, Rule]:
    """Recording rules by the name of what they record."""
    return {rule["record"]: rule for rule in rules() if "record" in rule}
