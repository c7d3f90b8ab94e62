import io

from rich.console import Console

from stream_peer.events.outputs import Weights
from stream_peer.tools.demo.live_table import Glance, LiveTable, live_table, status_line
from tests.unit.tools.report.sample_history import weights

MARKUP = "[red]me[/red]"


def glance(phase: str = "Feeding", *, newest: Weights | None = None, resolved: int = 0) -> Glance:
    known = resolved > 0
    return Glance(
        phase=phase,
        sent=500,
        total=1000,
        events_per_second=250.0,
        lag={"forecast-events": 12},
        questions=80,
        dead_letters=3,
        weights=newest,
        resolved=resolved,
        mix_loss=0.11 if known else None,
        mean_loss=0.15 if known else None,
    )


def drawn(seen: Glance, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(live_table(seen, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_shows_weights_error_rate_trust_throughput_and_lag() -> None:
    text = drawn(glance(newest=weights(1, {"a": 0.7, "b": 0.3}), resolved=40))
    for expected in ("trust ok", "13.0% [8.0%, 20.0%]", "250/s", "forecast-events 12", "0.700", "mix lost 0.110"):
        assert expected in text
    assert "3 dead letters" in text


def test_copies_and_the_random_expert_are_shown_even_without_weight() -> None:
    shares = {f"e{number:02d}": 0.06 for number in range(16)} | {"random": 0.01, "copy-of-e01": 0.02}
    text = drawn(glance(newest=weights(1, shares)))
    assert "random" in text
    assert "copy-of-e01" in text
    assert "e15" not in text


def test_every_line_of_the_table_fits_a_narrow_terminal() -> None:
    text = drawn(glance(newest=weights(1, {"a" * 80: 0.7, "b": 0.3})), width=80)
    assert max(map(len, text.splitlines())) <= 80


def test_names_are_text_and_no_markup() -> None:
    assert MARKUP in drawn(glance(newest=weights(1, {MARKUP: 1.0})))


def test_before_the_service_is_there_only_the_phase_is_shown() -> None:
    starting = glance("Starting the worker")._replace(total=0, sent=0)
    assert drawn(starting).strip() == status_line(starting) == "Starting the worker …"


def test_the_table_says_how_to_read_it() -> None:
    text = drawn(glance(newest=weights(1, {"a": 0.7, "b": 0.3})))
    for expected in ("mix: share", "select: chance", "smaller is better"):
        assert expected in text


def test_before_the_first_weights_the_table_says_that_it_waits() -> None:
    text = drawn(glance())
    assert "expert" not in text
    assert "Waiting for the first weights" in text
    assert "no outcome revealed yet" in text


def test_one_line_says_the_same_where_there_is_no_terminal() -> None:
    text = status_line(glance(newest=weights(1, {"a": 0.7, "b": 0.3}), resolved=40))
    assert "500 of 1,000 events" in text
    assert "loss of mix 0.110, of mean 0.150 on 40 resolved" in text
    assert "\n" not in text


def test_without_a_terminal_a_line_comes_with_each_phase_and_every_five_seconds() -> None:
    now = 0.0
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    with LiveTable(console, lambda: now) as live:
        for moment, phase in ((0.0, "Feeding"), (1.0, "Feeding"), (5.0, "Feeding"), (5.5, "Done"), (6.0, "Done")):
            now = moment
            live.show(glance(phase))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue().splitlines()
    assert [text.split(":")[0] for text in printed] == ["Feeding", "Feeding", "Done"]


def test_on_a_terminal_the_table_is_drawn_in_place() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with LiveTable(console, lambda: 0.0) as live:
        live.show(glance("Feeding"))
        live.show(glance("Done"))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[" in console.file.getvalue()


def test_bars_take_the_room_that_the_numbers_leave() -> None:
    for width in (80, 81, 90, 104, 120):
        text = drawn(glance(newest=weights(1, {"a" * 24: 0.7, "b": 0.3})), width)
        assert "…" not in text
        row = next(line for line in text.splitlines() if line.startswith("aaa"))
        assert row.count("━") == min(24, width - 80)


def test_the_table_fits_the_smallest_usual_terminal() -> None:
    shares = {f"e{number:02d}": 0.06 for number in range(16)} | {"random": 0.01, "copy-of-a": 0.01, "copy-of-b": 0.01}
    assert len(drawn(glance(newest=weights(1, shares), resolved=40), width=80).splitlines()) <= 24
