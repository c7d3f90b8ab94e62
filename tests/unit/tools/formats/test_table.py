"""Tables of forecasts: columns are found or named, and nothing is guessed."""

import re
from pathlib import Path

import pytest

from stream_peer.errors import NothingUsableError, UnreadableFileError
from stream_peer.tools.formats import table as table_format
from tests.unit.tools.formats.support import imported, table


def test_columns_are_found_by_their_names_in_any_spelling(tmp_path: Path) -> None:
    file = table(tmp_path / "f.csv", "Question ID,Model,Forecast,Created At", ["q,m,0.3,2025-03-01 10:00:00 UTC"])

    assert imported("csv", file).said() == {("q", "m"): [("2025-03-01T10:00:00Z", 0.3)]}


def test_percentages_are_taken_by_their_unit_alone(tmp_path: Path) -> None:
    file = table(tmp_path / "f.csv", "question,expert,probability,time", ["q,a,1,2025-03-01", "q,b,62%,2025-03-01"])

    assert imported("csv", file).said() == {("q", "a"): [("2025-03-01T00:00:00Z", 1.0)]}
    assert imported("csv", file, unit="percent").said()["q", "b"] == [("2025-03-01T00:00:00Z", 0.62)]


def test_a_column_that_may_be_another_one_too_must_be_named(tmp_path: Path) -> None:
    file = table(tmp_path / "f.csv", "question,expert,probability,date,created_at", ["q,a,0.5,2025-03-01,2025-03-02"])

    with pytest.raises(UnreadableFileError, match="date or created_at may be the time"):
        imported("csv", file)
    assert imported("csv", file, columns={"time": "created_at"}).said()["q", "a"] == [("2025-03-02T00:00:00Z", 0.5)]


@pytest.mark.parametrize(
    ("columns", "why"),
    [({}, "no column for the time; it has expert, probability, question"), ({"time": "when"}, "'when', named for the")],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(
    tmp_path: Path, columns: dict[str, str], why: str
) -> None:
    file = table(tmp_path / "f.csv", "question,expert,probability", ["q,a,0.5"])

    with pytest.raises(UnreadableFileError, match=why):
        imported("csv", file, columns=columns)


def test_an_outcome_counts_as_known_when_it_was_or_at_the_close_or_at_the_last_forecast(tmp_path: Path) -> None:
    header = "question,expert,probability,time,outcome,closes,resolved"
    rows = [
        "a,e,0.5,2025-03-01,yes,2025-03-05,2025-03-07",
        "b,e,0.5,2025-03-01,0,2025-03-05,",
        "c,e,0.5,2025-03-01,True,,",
        "c,e,0.6,2025-03-03,True,,",
        "d,e,0.5,2025-03-01,annulled,,",
        "e,e,0.5,2025-03-01,,,",
    ]

    told = imported("csv", table(tmp_path / "f.csv", header, rows)).told()

    assert told == {
        "a": (1, "2025-03-07T00:00:00Z"),
        "b": (0, "2025-03-05T00:00:00Z"),
        "c": (1, "2025-03-03T00:00:00Z"),
        "d": (None, "2025-03-01T00:00:00Z"),
    }


def test_outcomes_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    forecasts = table(tmp_path / "f.csv", "question,expert,probability,time", ["q,a,0.5,2025-03-01"])
    outcomes = table(tmp_path / "o.csv", "question;outcome;resolved", ["q;no;2025-03-09", "r;yes;2025-03-09"])

    found = imported("csv", outcomes, forecasts)

    assert found.told() == {"q": (0, "2025-03-09T00:00:00Z")}
    assert found.counts["questions"] == 1


def test_a_fraction_is_no_outcome_and_its_forecast_is_one(tmp_path: Path) -> None:
    file = table(tmp_path / "f.csv", "question,expert,probability,time,outcome", ["q,a,0.5,2025-03-01,0.49"])

    found = imported("csv", file)

    assert (found.counts["forecasts"], found.told()) == (1, {})
    assert found.reasons == {"outcome-unknown": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("q,a,0.5", "unreadable"),
        ("q,a,nan,2025-03-01", "missing-field"),
        ("q,,0.5,2025-03-01", "missing-field"),
        ("q,a,half,2025-03-01", "wrong-type"),
        ("q,a,0.5,1/3/2025", "time-format"),
        ("q,a,0.5,9999-01-01", "time-range"),
        (f"q,{'a' * 257},0.5,2025-03-01", "id-length"),
        (f"q,a{'b' * 1_000_001},0.5,2025-03-01", ""),
    ],
)
def test_a_row_that_cannot_be_used_is_counted_by_its_reason(tmp_path: Path, row: str, reason: str) -> None:
    file = table(tmp_path / "f.csv", "question,expert,probability,time", [row, "q,z,0.5,2025-03-01"])

    if not reason:
        with pytest.raises(UnreadableFileError, match="longer than"):
            imported("csv", file)
        return
    found = imported("csv", file)
    assert found.reasons == {reason: 1}
    assert list(found.said()) == [("q", "z")]


def test_a_file_without_any_forecast_is_refused_with_its_first_fault(tmp_path: Path) -> None:
    file = table(tmp_path / "f.csv", "question,expert,probability,time", ["q,a,65,2025-03-01"])

    with pytest.raises(NothingUsableError, match=r"f\.csv:2: probability is '65'.*--unit percent"):
        imported("csv", file)


def test_lines_of_a_panel_have_one_answer_or_those_of_all_models_or_describe(tmp_path: Path) -> None:
    lines = [
        '{"id": "q", "llm": "a", "answer": 0.25, "at": "2025-03-01T10:00:00Z"}',
        '{"id": "q", "forecasts": {"a": 0.5, "b": 0.75}, "at": 1740900000}',
        '{"id": "q", "outcome": true, "resolved": "2025-03-09"}',
        '{"id": "q", "llm": "b", "at": "2025-03-01"}',
        "{",
    ]
    (tmp_path / "panel.jsonl").write_text("\n".join(lines))

    found = imported("llm-panel", tmp_path / "panel.jsonl")

    assert found.said()["q", "a"] == [("2025-03-01T10:00:00Z", 0.25), ("2025-03-02T07:20:00Z", 0.5)]
    assert found.told() == {"q": (1, "2025-03-09T00:00:00Z")}
    assert found.reasons == {"missing-field": 1, "unreadable": 1}


def test_the_table_of_columns_in_the_docstring_is_that_of_the_code() -> None:
    rows = [line for line in (table_format.__doc__ or "").splitlines() if line.startswith("``")]

    told = {tuple(re.findall(r"``(\w+)``", line)) for line in rows}

    assert told == {(role, *names) for role, names in table_format.ROLES.items()}


CHAIR = [
    "chair,Ada,a,0.6,2025-03-01,Bo,2025-03-05,2025-03-07",
    "chair,Bo,a,0.4,2025-03-01,Bo,2025-03-05,2025-03-07",
    "rain,,a,0.3,2025-03-01,yes,2025-03-05,2025-03-07",
]


def test_a_column_of_options_makes_a_question_with_options_and_the_outcome_names_one(tmp_path: Path) -> None:
    file = table(tmp_path / "f.csv", "question,option,expert,probability,time,outcome,closes,resolved", CHAIR)

    found = imported("csv", file)

    assert found.said() == {
        (question, "a"): [("2025-03-01T00:00:00Z", p)]
        for question, p in (("chair::=Ada", 0.6), ("chair::=Bo", 0.4), ("rain", 0.3))
    }
    assert {question: outcome for question, (outcome, _) in found.told().items()} == {
        "chair::=Ada": 0,
        "chair::=Bo": 1,
        "rain": 1,
    }


def test_an_outcome_that_is_none_of_the_options_is_refused(tmp_path: Path) -> None:
    rows = [row.replace(",Bo,2025-03-05", ",Bob,2025-03-05") for row in CHAIR]
    file = table(tmp_path / "f.csv", "question,option,expert,probability,time,outcome,closes,resolved", rows)

    found = imported("csv", file)

    assert [*found.told()] == ["rain"]
    assert found.reasons == {"outcome-unknown": 1}


def test_a_column_of_thresholds_makes_a_cdf_and_a_file_of_its_own_may_have_the_value(tmp_path: Path) -> None:
    header = "question,threshold,expert,probability,time"
    forecasts = table(tmp_path / "f.csv", header, ["cpi,2.0,a,0.1,2025-03-01", "cpi,3,a,0.8,2025-03-01"])
    outcomes = table(tmp_path / "o.csv", "question,outcome", ["cpi,2.4"])

    found = imported("csv", outcomes, forecasts)

    assert {question: outcome for question, (outcome, _) in found.told().items()} == {
        "cpi::<=2": 0,
        "cpi::<=3": 1,
    }
