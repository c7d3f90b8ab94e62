"""``stream-peer replay``: files and logs are folded as the service would, and what came of it is said."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from stream_peer.cli.replay import comparison_text
from stream_peer.tools.replay import feed_log_reader
from stream_peer.tools.replay.feed_log_reader import Comparison
from tests.unit.cli.support import run
from tests.unit.tools.replay.file_lines import season

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "season.jsonl"
    path.write_bytes(b"\n".join(season()))
    return path


def test_replay_prints_a_summary_and_writes_the_topics(capsys: Capture, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    ended = run(capsys, "replay", str(file), "--out", str(out), "--set", "round_every=9h", "--experts", "2")

    assert ended.code == 0
    assert "feed econ: " in ended.out
    assert "and 3 more" in ended.out
    last = (out / "weights.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["resolved"] == 40


def test_outcomes_can_be_held_back_and_questions_put_into_one_feed(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "replay", str(file), "--reveal", "0", "--feed-as", "mine", "--shuffle", "3")

    assert "feed mine: " in ended.out
    assert "no outcome was revealed" in ended.out


def test_the_share_of_outcomes_that_is_told_may_have_a_seed(capsys: Capture, file: Path) -> None:
    told = [run(capsys, "replay", str(file), "--reveal", text).out for text in ("0.5", "0.5,1", "0.5,2", "0.5,1")]

    assert told[1] == told[3]
    assert len(set(told)) == 3


@pytest.mark.parametrize("text", ["2", "nan", "0.5,", "0.5,x", ",1", "half", "0.5,1,2"])
def test_a_share_that_is_none_is_refused(capsys: Capture, file: Path, text: str) -> None:
    ended = run(capsys, "replay", str(file), "--reveal", text)

    assert ended.code == 2
    assert "--reveal" in ended.err


def test_a_file_that_is_not_there_is_named(capsys: Capture, tmp_path: Path) -> None:
    ended = run(capsys, "replay", str(tmp_path / "nothing.jsonl"))

    assert ended.code == 2
    assert "nothing.jsonl cannot be read" in ended.err


def test_wrong_settings_are_all_named(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "replay", str(file), "--set", "nothing=1", "--set", "grace=often")

    assert ended.code == 78
    assert "defaults.nothing" in ended.err
    assert "defaults.grace" in ended.err


def test_a_variant_of_the_mathematics_is_chosen_by_set_and_named_in_the_summary(capsys: Capture, file: Path) -> None:
    chosen = ["--set", "method.learner=top-committee", "--set", "method.committee=2"]

    built_in, other = (run(capsys, "replay", str(file), *more) for more in ([], chosen))

    assert (built_in.code, other.code) == (0, 0)
    assert "  settings     method.learner=top-committee, method.committee=2\n" in other.out
    assert selected(built_in.out) != selected(other.out)
    assert set(selected(other.out)) == {"0.500", "0.000"}


def test_a_settings_file_chooses_variants_for_a_replay_and_for_nothing_else(
    capsys: Capture, file: Path, tmp_path: Path
) -> None:
    config = tmp_path / "variant.yaml"
    config.write_text("defaults: {method: {learner: top-committee, committee: 2}}\n", encoding="utf-8")

    replayed, checked = (
        run(capsys, *words, "-c", str(config)) for words in (["replay", str(file)], ["settings", "check"])
    )

    assert replayed.code == 0
    assert "  settings     method.learner=top-committee, method.committee=2\n" in replayed.out
    assert checked.code == 78
    assert "defaults.method.learner" in checked.err


def test_a_full_disk_is_one_sentence(capsys: Capture, file: Path, tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no device that is always full")
    out = tmp_path / "out"
    out.mkdir()
    (out / "weights.jsonl").symlink_to(full)

    ended = run(capsys, "replay", str(file), "--out", str(out))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"stream-peer: the topics cannot be written to {out}: No space left on device\n"


@pytest.mark.parametrize(
    "words", [["replay", "f", "--out", ""], ["replay", "f", "--report", ""], ["paper", "--out", ""]], ids=" ".join
)
def test_an_empty_place_to_write_to_is_not_the_directory_one_is_in(capsys: Capture, words: list[str]) -> None:
    ended = run(capsys, *words)

    assert (ended.code, ended.out) == (2, "")
    assert "it is empty: name a place, or . for this directory" in ended.err


def selected(summary: str) -> list[str]:
    rows = [line.split() for line in summary.splitlines() if line.startswith("    e")]
    return [row[2] for row in rows]


def test_the_preset_paper_replays_a_file(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "replay", str(file), "--set", "preset=paper")

    assert ended.code == 0
    assert "  settings     preset=paper\n" in ended.out


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        (["method.error_rate=class-moments", "min_experts=2"], "defaults.min_experts (--set): class-moments needs at"),
        (["method.learner=hedge"], "defaults.method.learner (--set): hedge needs method.learning_rate"),
        (["method.against=everybody"], "defaults.method.error_rate (--set): moments estimates how often"),
        (["preset=paper", "loss=log"], "defaults.loss (--set): the preset paper is what the paper says"),
    ],
)
def test_what_cannot_be_computed_ends_a_replay_with_its_reason(
    capsys: Capture, file: Path, assignments: list[str], said: str
) -> None:
    ended = run(capsys, "replay", str(file), *(word for one in assignments for word in ("--set", one)))

    assert (ended.code, ended.out) == (78, "")
    assert said in ended.err


def test_a_line_that_comes_after_outcomes_is_in_no_score_and_named(capsys: Capture, repository: Path) -> None:
    said = run(
        capsys,
        "replay",
        str(repository / "tests" / "cases2" / "late-line-after-outcomes.jsonl"),
        "--set",
        "method_version=1",
    ).out

    assert "  Brier score  mix 0.1495, " in said
    assert "(late-line-after-outcomes.jsonl:16)" in said


def test_questions_that_one_expert_answers_alone_mend_no_skill(
    capsys: Capture, repository: Path, tmp_path: Path
) -> None:
    whole = repository / "tests" / "cases2" / "solo-questions-mend-skill.jsonl"
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:25]))

    before, after = (
        next(line for line in run(capsys, "replay", str(path)).out.splitlines() if line.startswith("    cy")).split()
        for path in (few, whole)
    )

    assert before[-1] == after[-1] == "-2.41"
    assert float(after[1]) <= float(before[1])


def test_a_file_sorted_by_expert_is_scored_like_one_sorted_by_time(capsys: Capture, tmp_path: Path, file: Path) -> None:
    other = tmp_path / "by-expert.jsonl"
    lines = sorted(season(), key=lambda line: str(json.loads(line).get("expert_id")))
    other.write_bytes(b"\n".join(lines))

    said, by_expert = (run(capsys, "replay", str(path)).out for path in (file, other))

    assert "all were put in order of time" in by_expert
    assert by_expert.partition("feed econ")[2] == said.partition("feed econ")[2]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("iso-8601-forms", "  experts      6\n"),
        ("dates-without-time", "  questions    1 (1 counted, 1 resolved)\n"),
        ("bom-before-first-line", "  experts      4\n"),
    ],
)
def test_no_line_is_refused_for_how_it_is_written(capsys: Capture, repository: Path, name: str, said: str) -> None:
    ended = run(capsys, "replay", str(repository / "tests" / "cases2" / f"{name}.jsonl"))

    assert ended.code == 0
    assert "refused" not in ended.out
    assert said in ended.out


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n", b'{"a":1}\n[]\n'],
    ids=["empty", "blank", "png", "other"],
)
@pytest.mark.parametrize("command", [["replay"], ["replay", "--explain"], ["explain", "econ", "ann"]])
def test_files_in_which_nothing_can_be_used_end_with_65_and_one_sentence(
    capsys: Capture, tmp_path: Path, content: bytes, command: list[str]
) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(content)
    arguments = [command[0], str(path), *command[1:]] if command[0] == "replay" else [*command, str(path)]

    ended = run(capsys, *arguments)

    assert (ended.code, ended.out) == (65, "")
    assert ended.err.count("\n") == 1
    assert f"nothing in {path} can be used: " in ended.err


def test_one_line_that_can_be_used_is_enough(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b"x\n" * 400 + season()[0])

    ended = run(capsys, "replay", str(path))

    assert ended.code == 0
    assert "400 refused" in ended.out


def test_without_a_file_the_usage_is_explained(capsys: Capture) -> None:
    ended = run(capsys, "replay")

    assert ended.code == 2
    assert "name at least one file" in ended.err


def test_files_and_a_log_are_not_replayed_at_once(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "replay", str(file), "--from-log", "econ")

    assert ended.code == 2
    assert "not both" in ended.err


def test_a_comparison_with_what_was_published_names_what_differs() -> None:
    equal = comparison_text(Comparison(records=9, equal=5, different=[], never=[], log_start=0))
    torn = comparison_text(Comparison(9, 3, [("weights", "econ", 7)], [("peer-losses", "q", 8)], log_start=4))

    assert equal == "9 records folded; 5 published revisions are what the log gives"
    assert "begins at offset 4" in torn
    assert "weights econ revision 7" in torn
    assert "not given by the log (the first 1):\n  peer-losses q revision 8" in torn


def test_places_that_cannot_be_written_are_refused_in_one_sentence(capsys: Capture, file: Path, tmp_path: Path) -> None:
    report = run(capsys, "replay", str(file), "--report", str(tmp_path / "missing" / "report.html"))
    out = run(capsys, "replay", str(file), "--out", str(file / "inside"))

    assert (report.code, out.code) == (2, 2)
    assert "there is no directory" in report.err
    assert report.out == ""
    assert "inside" in out.err


def test_a_wrong_setting_is_said_to_come_from_its_flag(capsys: Capture, file: Path) -> None:
    assert "defaults.nothing (--set): no such setting" in run(capsys, "replay", str(file), "--set", "nothing=1").err


def test_the_number_of_listed_experts_is_not_negative(capsys: Capture, file: Path) -> None:
    assert run(capsys, "replay", str(file), "--experts", "-2").code == 2
    assert run(capsys, "tail", "econ", "--experts", "-2").code == 2


def test_a_feed_of_which_nothing_was_published_is_not_called_equal(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Comparison(records=1, equal=0, different=[], never=[], log_start=0)
    monkeypatch.setattr(feed_log_reader, "replay_from_log", lambda *_, **__: nothing)

    ended = run(capsys, "replay", "--from-log", "econ")

    assert ended.code == 2
    assert "nothing was published of feed 'econ'" in ended.err


def test_the_events_of_the_readme_are_taken(capsys: Capture, repository: Path, tmp_path: Path) -> None:
    shown = (repository / "README.md").read_text(encoding="utf-8").splitlines()
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(line for line in shown if line.startswith('{"type"')), encoding="utf-8")

    out = run(capsys, "replay", str(file)).out

    assert "3 events up to 2026-06-17T18:05:00Z\n\nfeed econ: " in out


def test_the_life_of_a_question_is_told_beside_everything_else(capsys: Capture, file: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out", tmp_path / "report.html"

    ended = run(capsys, "replay", str(file), "--out", str(out), "--report", str(report), "--explain", "q003")

    assert ended.code == 0
    assert ended.out.startswith("The life of q003\nA question of feed econ, published 2 times, from season.jsonl.")
    assert "\n480 events up to" in ended.out
    assert report.stat().st_size > 10_000
    assert (out / "weights.jsonl").stat().st_size > 1_000


def test_without_a_question_the_one_with_the_most_revisions_is_told_and_others_named(
    capsys: Capture, repository: Path
) -> None:
    example = str(repository / "examples" / "life-of-a-question.jsonl")

    chosen, named = (run(capsys, "replay", example, *words) for words in (["--explain"], ["--explain", ASKED]))

    assert chosen.out.startswith(f"The life of {ASKED}\n")
    assert "--explain QUESTION tells of others, e.g. claims-" in chosen.out
    story, _, _ = named.out.partition("\n\n244 events")
    assert chosen.out.startswith(story)


ASKED = "fed-cut-june-2026"


def test_a_question_that_no_line_is_about_is_refused_with_those_that_may_be_meant(capsys: Capture, file: Path) -> None:
    ended, strange = (run(capsys, "replay", str(file), "--explain", name) for name in ("q00", "zebra"))

    assert (ended.code, ended.out, strange.code) == (2, "", 2)
    assert "no line of the files is about question 'q00'; did you mean q000 or q001 or q002?" in ended.err
    assert strange.err.endswith("no line of the files is about question 'zebra'\n")


def test_files_of_which_nothing_is_published_cannot_be_explained(capsys: Capture, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"type": "question", "question_id": "q", "at": "2026-03-01T12:00:00Z"}\n', encoding="utf-8")

    ended = run(capsys, "replay", str(empty), "--explain")

    assert (ended.code, ended.out) == (2, "")
    assert "no question of these files was published" in ended.err


def test_explain_in_front_of_the_files_says_where_it_goes(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "replay", "--explain", str(file))

    assert ended.code == 2
    assert "was taken for the question of --explain, which stands after the files" in ended.err


def test_only_files_are_explained(capsys: Capture) -> None:
    ended = run(capsys, "replay", "--from-log", "econ", "--explain", "q")

    assert ended.code == 2
    assert "--explain is for files, not for --from-log" in ended.err


def test_what_a_replay_of_a_log_would_not_heed_is_refused(capsys: Capture, tmp_path: Path) -> None:
    ended = run(capsys, "replay", "--from-log", "econ", "--export", f"econ={tmp_path / 'f.gz'}", "--shuffle", "7")

    assert ended.code == 2
    assert "--shuffle and --export are for files, not for --from-log" in ended.err


def test_shadows_are_folded_beside_and_compared(capsys: Capture, file: Path) -> None:
    same, log = ("--shadow", "same:stretch=true"), ("--shadow", "log:loss=log,min_experts=2")
    beside = ("--set", "shadows=[{name: plain, stretch: false}]")

    ended = run(capsys, "replay", str(file), *same, *log, *beside)

    assert ended.code == 0
    summary, _, table = ended.out.partition("\nfeed econ\n")
    assert "    plain " in summary
    assert [line.split()[0] for line in table.splitlines()] == ["shadows", "name", "same", "log"]
    assert table.splitlines()[2].split()[-1] == "0.000"


def test_a_shadow_that_cannot_be_is_refused_before_anything_is_folded(capsys: Capture, file: Path) -> None:
    ended = run(capsys, "replay", str(file), "--shadow", "a:nothing=1", "--shadow", "b:mixer.prior_mean=1")

    assert ended.out == ""
    assert "defaults.nothing (--shadow a): no such setting" in ended.err
    assert "defaults.mixer (--shadow b): the four priors sum to" in ended.err


def test_a_log_is_not_folded_under_other_rounds(capsys: Capture) -> None:
    ended = run(capsys, "replay", "--from-log", "econ", "--shadow", "daily:round_every=1d")

    assert "round_every (--shadow daily): changes which rounds there are, and the log has them already" in ended.err


def test_a_pipe_is_explained_only_with_the_name_of_the_question(capsys: Capture) -> None:
    read, write = os.pipe()
    os.close(write)

    ended = run(capsys, "replay", f"/dev/fd/{read}", "--explain")
    os.close(read)

    assert ended.code == 2
    assert "can be read only once: name the question, --explain=QUESTION" in ended.err


def test_the_report_of_a_replay_knows_settings_shadows_and_why_weights_are_as_they_are(
    capsys: Capture, file: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    words = ("--report", str(report), "--set", "min_experts=2", "--shadow", "slow:mixer.peer_rate=0.1")

    ended = run(capsys, "replay", str(file), *words, "--feed-partitions", "3")

    page = report.read_text(encoding="utf-8")
    assert ended.code == 0
    assert f"report: {report}" in ended.out
    assert "<code>min_experts</code></th><td><code>2</code></td><td><code>3</code>" in page
    assert re.search(r"<h3>Shadows</h3>.*?<th scope=\"row\">slow</th>", page, re.DOTALL)
    assert len(re.findall(r"<h4>e\d</h4><p>Between 2 Mar 2026 and ", page)) == 3


def test_one_who_cannot_draw_learns_it_before_the_replay(
    capsys: Capture, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    ended = run(capsys, "replay", str(file), "--report", str(tmp_path / "report.html"))

    assert ended.code != 0
    assert ended.out == ""
    assert "pip install 'stream-peer[report]'" in ended.err
