import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from stream_peer.adapters.logs import RepeatFilter, configure
from stream_peer.settings import Log, Secret


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Leave logging as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in ("aiokafka", "kafka", "faust", "mode", "asyncio")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in levels.items():
        logging.getLogger(name).setLevel(was)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_our_records_and_those_of_libraries_are_json_alike() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)

    structlog.get_logger("stream_peer.engine").warning("feed_late", feed="econ", kept=3)
    logging.getLogger("aiokafka.consumer").warning("Heartbeat failed: %s", "dead")

    ours, theirs = lines(out)
    assert (ours["event"], ours["feed"], ours["kept"], ours["level"]) == ("feed_late", "econ", 3, "warning")
    assert (theirs["event"], theirs["logger"]) == ("Heartbeat failed: dead", "aiokafka.consumer")
    assert str(ours["timestamp"]).endswith("Z")


def test_what_is_no_terminal_gets_json_and_the_console_gets_text() -> None:
    machine, person = io.StringIO(), io.StringIO()

    configure(Log(), stream=machine)
    structlog.get_logger().info("hello")
    configure(Log(format="console"), stream=person)
    structlog.get_logger().info("hello")

    assert lines(machine)[0]["event"] == "hello"
    assert "hello" in person.getvalue()
    assert not person.getvalue().startswith("{")


def test_libraries_are_quieter_than_we_unless_debugging() -> None:
    out = io.StringIO()
    configure(Log(format="json", level="info"), stream=out)
    logging.getLogger("aiokafka.group").info("Joined")
    structlog.get_logger("stream_peer").info("ready")
    configure(Log(format="json", level="debug"), stream=out)
    logging.getLogger("aiokafka.group").info("Joined again")

    assert [line["event"] for line in lines(out)] == ["ready", "Joined again"]


def test_a_secret_never_appears_whoever_logs_it() -> None:
    out = io.StringIO()
    secret = Secret('hun"ter2')
    configure(Log(format="json"), secrets=[secret], stream=out)

    logging.getLogger("aiokafka").error("options: %s", {"sasl_plain_password": secret.reveal()})
    structlog.get_logger().error("failed", password=secret, text=secret.reveal())
    try:
        int(secret.reveal())
    except ValueError:
        structlog.get_logger().exception("crashed")

    assert "ter2" not in out.getvalue()
    assert len(lines(out)) == 3
    assert "Traceback" in str(lines(out)[2]["exception"])


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(message: str, *arguments: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("aiokafka", level, "file", 1, message, arguments, None)


def test_repeats_are_kept_back_and_counted_in_the_next_window() -> None:
    clock = Clock()
    repeats = RepeatFilter(burst=2, window=10.0, clock=clock)

    shown = [repeats.filter(record("no broker %s", number)) for number in range(5)]
    clock.now = 10.0
    late = record("no broker %s", 6)

    assert shown == [True, True, False, False, False]
    assert repeats.filter(late)
    assert late.__dict__["repeats"] == 3


def test_other_messages_and_levels_are_not_held_back_with_a_repeated_one() -> None:
    repeats = RepeatFilter(burst=1, clock=Clock())

    assert repeats.filter(record("a"))
    assert not repeats.filter(record("a"))
    assert repeats.filter(record("b"))
    assert repeats.filter(record("a", level=logging.ERROR))


@pytest.mark.case("C06")
def test_the_one_warning_of_a_question_is_no_repeat_of_that_of_another() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)
    log = structlog.get_logger("stream_peer.topology.notices")

    for number in range(9):
        log.warning(
            "contradictory-times", feed="econ", question="q" * 200 + str(number), message="closes before it opens"
        )

    assert [str(line["question"])[-1] for line in lines(out)] == list("012345678")


def test_a_quiet_window_leaves_no_count() -> None:
    clock = Clock()
    repeats = RepeatFilter(burst=2, window=1.0, clock=clock)
    repeats.filter(record("a"))
    clock.now = 5.0
    later = record("a")

    assert repeats.filter(later)
    assert "repeats" not in later.__dict__


def test_the_filter_forgets_rather_than_grow_without_bound() -> None:
    repeats = RepeatFilter(burst=1, clock=Clock())

    for number in range(3000):
        repeats.filter(record(f"message {number}"))

    assert len(repeats._kinds) <= 1000


def test_the_number_kept_back_stands_in_the_line() -> None:
    out = io.StringIO()
    clock = Clock()
    configure(Log(format="json"), stream=out)
    handler = logging.getLogger().handlers[0]
    handler.filters[:] = [RepeatFilter(burst=1, window=1.0, clock=clock)]
    log = structlog.get_logger()
    for _ in range(3):
        log.warning("again")
    clock.now = 2.0
    log.warning("again")

    assert [line.get("repeats_not_shown") for line in lines(out)] == [None, 2]


def test_our_own_notes_are_never_held_back() -> None:
    repeats = RepeatFilter(burst=1, clock=Clock())
    notes = [logging.LogRecord("stream_peer.topology", logging.INFO, "f", 1, "owned", (), None) for _ in range(5)]

    assert all(repeats.filter(note) for note in notes)


def test_our_warnings_about_different_things_are_different() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)

    for partition in range(8):
        structlog.get_logger("stream_peer").warning("input_lost", partition=partition)

    assert len(lines(out)) == 8


def test_starts_of_inner_services_and_retries_of_a_fresh_broker_are_left_out() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)

    logging.getLogger("stream_peer.topology.worker").info("[^StageWorker]: Starting...")
    logging.getLogger("aiokafka.consumer").error("Group Coordinator Request failed: %s", "GroupCoordinatorNotAvailable")
    logging.getLogger("stream_peer.topology.worker").error("[^StageWorker]: Crashed")

    assert [line["event"] for line in lines(out)] == ["[^StageWorker]: Crashed"]
