"""A hub of models: quantiles and cdfs become questions by thresholds."""

from pathlib import Path

import pytest

from stream_peer.errors import NothingUsableError, UnreadableFileError
from stream_peer.tools.formats.hubverse import above
from tests.unit.tools.formats.support import imported, table

HEADER = "model_id,reference_date,target,location,horizon,target_end_date,output_type,output_type_id,value"
TASK = "2025-01-04,hosp,25,1,2025-01-11"


def outputs(path: Path, *rows: str) -> Path:
    return table(
        path / "out.csv", HEADER, [f"{model},{TASK},{rest}" for model, _, rest in (r.partition(",") for r in rows)]
    )


def observed(path: Path, *rows: str) -> Path:
    return table(path / "target.csv", "as_of,target_end_date,target,location,location_name,observation", rows)


def test_quantiles_become_the_question_whether_the_last_observation_will_be_exceeded(tmp_path: Path) -> None:
    said = outputs(tmp_path, "m,quantile,0.25,80", "m,quantile,0.75,120", "m,quantile,0.5,100", "n,quantile,0.5,90")
    seen = observed(
        tmp_path, ",2024-12-28,hosp,25,here,110", ",2025-01-04,hosp,25,here,50", ",2025-01-11,hosp,25,here,111"
    )

    found = imported("hubverse", said, seen)

    question = "25 hosp 2025-01-11 > 110"
    [(made, of_m)], [(_, of_n)] = found.said()[question, "m"], found.said()[question, "n"]
    assert (made, of_n) == ("2025-01-04T00:00:00Z", 0.25)
    assert of_m == pytest.approx(0.375)
    assert found.asked()[question][1] == "2025-01-12T00:00:00Z"
    assert found.told() == {question: (1, "2025-01-19T00:00:00Z")}


def test_the_last_version_of_an_observation_is_the_outcome(tmp_path: Path) -> None:
    said = outputs(tmp_path, "m,quantile,0.5,100")
    seen = observed(tmp_path, "2025-01-20,2025-01-11,hosp,25,x,90", "2025-01-15,2025-01-11,hosp,25,x,120")

    told = imported("hubverse", said, seen, thresholds=("100",)).told()

    assert told == {"25 hosp 2025-01-11 > 100": (0, "2025-01-19T00:00:00Z")}


def test_a_cdf_has_a_question_at_each_of_its_values(tmp_path: Path) -> None:
    said = outputs(tmp_path, "m,cdf,50,0.2", "m,cdf,100,0.9", "m,pmf,low,0.3")
    oracle = table(
        tmp_path / "oracle.csv",
        "target_end_date,target,location,output_type,output_type_id,oracle_value",
        ["2025-01-11,hosp,25,quantile,NA,100", "2025-01-11,hosp,25,cdf,50,0"],
    )

    found = imported("hubverse", said, oracle)

    assert {q: p for (q, _), [(_, p)] in found.said().items()} == {
        "25 hosp 2025-01-11 > 50": pytest.approx(0.8),
        "25 hosp 2025-01-11 > 100": pytest.approx(0.1),
    }
    assert {q: outcome for q, (outcome, _) in found.told().items()} == {
        "25 hosp 2025-01-11 > 50": 1,
        "25 hosp 2025-01-11 > 100": 0,
    }
    assert found.reasons == {"not-yes-no": 1}


def test_the_model_and_the_day_may_be_told_by_directory_and_horizon(tmp_path: Path) -> None:
    (tmp_path / "team-model").mkdir()
    table(
        tmp_path / "team-model" / "2025-01-04-team-model.csv",
        "origin_date,horizon,location,output_type,output_type_id,value",
        ["2025-01-04,2,25,quantile,0.5,100"],
    )

    said = imported("hubverse", tmp_path, thresholds=("100",)).said()

    assert said == {("25 2025-01-18 > 100", "team-model"): [("2025-01-04T00:00:00Z", 0.5)]}


def test_a_multiple_of_nothing_is_no_threshold(tmp_path: Path) -> None:
    said = outputs(tmp_path, "m,quantile,0.5,100")

    with pytest.raises(NothingUsableError, match="nothing was observed before 2025-01-04 of 25 hosp"):
        imported("hubverse", said, thresholds=("1.5x",))


@pytest.mark.parametrize("text", ["", "x", "many", "nan"])
def test_a_threshold_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableFileError, match="a value such as 200"):
        imported("hubverse", outputs(tmp_path, "m,quantile,0.5,100"), thresholds=(text,))


def test_probabilities_are_between_those_of_the_neighbours_and_never_0_or_1() -> None:
    values, levels = [10.0, 20.0, 20.0, 40.0], [0.1, 0.4, 0.6, 0.9]

    read = [above(threshold, values, levels) for threshold in (5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0)]

    assert read == pytest.approx([0.95, 0.9, 0.75, 0.4, 0.25, 0.1, 0.05])
