"""The samples of all formats, and what is used of each."""

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from stream_peer.cli.import_file import FORMAT_NAMES
from stream_peer.tools.formats.adapter import FormatOptions
from stream_peer.tools.formats.imported import FORMATS, ImportPlan, event_lines, gathered
from stream_peer.tools.replay.replay import replay
from tests.unit.tools.formats.support import SAMPLES, imported

OF_SURVEY = {"question": "Item", "expert": "Panelist", "probability": "Chance", "time": "Asked"}
USED = {
    "csv": (48, 48, 7, 402, {"probability-range": 1}),
    "parquet": (48, 48, 7, 406, {}),
    "metaculus": (48, 48, 7, 427, {"aggregate": 48, "not-yes-no": 2}),
    "manifold": (48, 47, 7, 396, {"no-forecast": 16, "not-yes-no": 2, "outcome-unknown": 1}),
    "gjopen": (48, 48, 7, 431, {"no-forecast": 149, "not-yes-no": 4, "after-outcome": 1}),
    "hubverse": (78, 78, 5, 400, {"not-yes-no": 1}),
    "polymarket": (40, 39, 1, 405, {"outcome-unknown": 1}),
    "kalshi": (40, 40, 1, 405, {}),
    "llm-panel": (40, 40, 5, 310, {"missing-field": 1}),
}
"""Questions, outcomes, experts, forecasts; and what is not used."""


def test_every_format_has_a_sample_and_stands_in_the_help() -> None:
    assert set(USED) == set(FORMATS) == set(FORMAT_NAMES)
    assert all((SAMPLES / name).is_dir() for name in FORMATS)


@pytest.mark.parametrize("name", USED)
def test_a_sample_is_used_as_far_as_it_can_be(name: str) -> None:
    options: dict[str, Any] = {"columns": OF_SURVEY, "unit": "percent"} if name == "parquet" else {}

    found = imported(name, SAMPLES / name, **options)

    assert (*found.counts.values(), dict(found.reasons)) == USED[name]


def test_names_make_one_question_of_the_markets_of_two_places_and_of_a_panel() -> None:
    prices = [imported(name, SAMPLES / name, names=SAMPLES / "names.csv") for name in ("polymarket", "kalshi")]
    panel = imported("llm-panel", SAMPLES / "llm-panel")

    assert {question for found in prices for question in found.told()} == set(panel.told())


def test_the_scores_of_a_sample_are_those_of_a_few_independent_lines() -> None:
    with gathered(ImportPlan("csv", [SAMPLES / "csv" / "forecasts.csv"], "econ", FormatOptions())) as made:
        result = replay([event_lines(made)])
    feed = result.history.feeds["econ"]
    scores = feed.scores()

    standing: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    outcomes = {}
    with (SAMPLES / "csv" / "forecasts.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if "%" not in row["probability"]:
                known = standing[row["question"]].get(row["expert"], ("", 0.0))
                standing[row["question"]][row["expert"]] = max(known, (row["time"], float(row["probability"])))
                outcomes[row["question"]] = row["outcome"] == "yes"
    means = {question: sum(p for _, p in said.values()) / len(said) for question, said in standing.items()}
    of_anna = [(said["anna"][1] - outcomes[question]) ** 2 for question, said in standing.items()]

    assert scores is not None
    assert scores.best is not None
    assert scores.questions == len(means) == 48
    assert scores.mean == pytest.approx(sum((means[q] - outcomes[q]) ** 2 for q in means) / 48, abs=1e-12)
    assert scores.best.expert_id == "anna"
    assert scores.best.loss == pytest.approx(sum(of_anna) / 48, abs=1e-12)


def test_withdrawn_forecasts_of_metaculus_end_unless_another_one_begins() -> None:
    with (SAMPLES / "metaculus" / "forecast_data.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["Forecaster ID"] and row["Probability Yes"]]
    begun = {(row["Question ID"], row["Forecaster Username"], row["Start Time"]) for row in rows}
    ended = {(row["Question ID"], row["Forecaster Username"], row["End Time"]) for row in rows if row["End Time"]}

    said = imported("metaculus", SAMPLES / "metaculus").said()

    withdrawn = sum(probability is None for moments in said.values() for _, probability in moments)
    assert 0 < withdrawn <= len(ended - begun) < len(ended)


def test_annulled_questions_of_metaculus_manifold_and_gjopen_are_annulled() -> None:
    for name in ("metaculus", "manifold", "gjopen"):
        outcomes = [outcome for outcome, _ in imported(name, SAMPLES / name).told().values()]
        assert outcomes.count(None) == 1, name


def test_a_question_of_metaculus_that_is_known_early_closes_then() -> None:
    found = imported("metaculus", SAMPLES / "metaculus")
    early = [event for event in found.events if event["type"] == "resolution" and event["at"] == event["closed_at"]]

    assert early
    assert all((found.asked()[event["question_id"]][1] or "") > event["closed_at"] for event in early)


def test_a_token_of_the_second_outcome_counts_as_one_less_its_price(tmp_path: Path) -> None:
    markets = [{"slug": "s", "clobTokenIds": '["1", "2"]', "closed": False, "startDate": "2025-01-01"}]
    (tmp_path / "markets.json").write_text(json.dumps(markets))
    (tmp_path / "2.json").write_text(json.dumps({"history": [{"t": 1740000000, "p": 0.25}]}))

    found = imported("polymarket", tmp_path, expert="crowd")

    assert found.said() == {("s", "crowd"): [("2025-02-19T21:20:00Z", 0.75)]}


def test_prices_of_kalshi_are_dollars_or_cents_or_lie_between_bid_and_ask(tmp_path: Path) -> None:
    candles = [
        {"end_period_ts": 1740000000, "price": {"close": 31}},
        {"end_period_ts": 1740000060, "price": {"close_dollars": "0.3300"}},
        {"end_period_ts": 1740000120, "price": {}, "yes_bid": {"close": 30}, "yes_ask": {"close_dollars": "0.4"}},
        {"end_period_ts": 1740000180, "price": {"close": None}},
    ]
    (tmp_path / "candles.json").write_text(json.dumps({"ticker": "T", "candlesticks": candles}, indent=1))

    found = imported("kalshi", tmp_path)

    assert [p for _, p in found.said()["T", "kalshi"]] == pytest.approx([0.31, 0.33, 0.35])
    assert found.reasons == {"no-forecast": 1}
