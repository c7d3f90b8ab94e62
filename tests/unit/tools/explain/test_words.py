"""Explanations are worded for people, and stand in lines that fit."""

import io

from rich.console import Console

from stream_peer.tools.explain.causes import CAUSES
from stream_peer.tools.explain.question_life import NarratedStep, QuestionLife
from stream_peer.tools.explain.text import WIDTH, print_explanation
from stream_peer.tools.explain.words import OWN, WORDS, meaning_of, points
from tests.unit.questions.question_log import DAY, T0


def test_every_cause_has_words_and_they_are_no_jargon() -> None:
    assert set(WORDS) == set(CAUSES)
    assert set(CAUSES) > OWN
    for cause in CAUSES:
        text = " ".join((*WORDS[cause], meaning_of(cause, "mix"), meaning_of(cause, "select"))).lower()
        for jargon in ("regret", "loss", "prior", "prequential", "leave-one-out", "η", "reference answer", "mixer"):
            assert jargon not in text


def test_what_the_truth_does_depends_on_the_weight() -> None:
    assert meaning_of("truth", "mix") != meaning_of("truth", "select")
    assert "from version 2 of the method on, adds the real one" in meaning_of("truth", "mix")
    assert meaning_of("others", "mix") == meaning_of("others", "select")


def test_a_trace_is_no_zero() -> None:
    assert points(-1e-9, 2) == "~0"
    assert points(0.0, 2) == "0"


LONG = "The round of 11 May 12:00 is published with " + ", ".join(f"e{n} 0.{n}5 → 0.{n}7" for n in range(9)) * 3
LIFE = QuestionLife(
    "The life of q",
    ("How to read it. " * 12,),
    (NarratedStep(T0, "It is announced", ()), NarratedStep(T0 + 400 * DAY, LONG, (LONG, "x" * 150))),
    (LONG,),
)


def printed(**options: object) -> str:
    target = io.StringIO()
    print_explanation(LIFE, Console(file=target, **options))  # type: ignore[arg-type]  # options of a console
    return target.getvalue()


def test_elsewhere_than_on_a_terminal_it_is_plain_text_of_a_hundred_columns() -> None:
    shown = printed(width=300)

    assert max(map(len, shown.splitlines())) == WIDTH
    assert "\x1b" not in shown
    assert not any(line.endswith(" ") for line in shown.splitlines())


def test_a_narrow_terminal_is_not_exceeded_and_says_the_same() -> None:
    narrow = printed(force_terminal=True, width=60, no_color=True, legacy_windows=False)

    plain = [line for line in printed().split() if line]
    bare = narrow.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert max(map(len, bare.splitlines())) <= 60
    assert "".join(bare.split()) == "".join(plain)


def test_a_year_stands_once_and_numbers_stay_with_their_names() -> None:
    rows = printed().splitlines()

    assert [row for row in rows if row.strip() in {"2026", "2027"}] == ["2026", "2027"]
    assert not any(row.rstrip().endswith(("→", "May", " 11")) for row in rows)
