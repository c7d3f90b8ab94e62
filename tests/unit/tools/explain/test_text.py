import io

from rich.console import Console

from stream_peer.tools.explain.question_life import NarratedStep, QuestionLife
from stream_peer.tools.explain.text import WIDTH, print_explanation
from tests.unit.questions.question_log import DAY, T0

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
