import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from stream_peer.serve.logs import LimitedHandler, Repeats, configure
from stream_peer.settings.process import Log, Secret
from tests.integration.support.waiting import wait_until
from tests.unit.clock import Clock


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

    structlog.get_logger("stream_peer.feeds").warning("feed_late", feed="econ", kept=3)
    logging.getLogger("aiokafka.consumer").warning("Heartbeat failed: %s", "dead")

    ours, theirs = lines(out)
    assert (ours["event"], ours["feed"], ours["kept"], ours["level"]) == ("feed_late", "econ", 3, "warning")
    assert (theirs["event"], theirs["logger"]) == ("Heartbeat failed: dead", "aiokafka.consumer")
    assert str(ours["timestamp"]).endswith("Z")
    assert {tuple(line)[:2] for line in (ours, theirs)} == {("event", "level")}, "what happened is read first"


@pytest.mark.parametrize(
    "logger", ["mode.services", "faust.transport.consumer", "aiokafka.consumer.fetcher", "asyncio"]
)
def test_what_a_library_says_of_a_crash_is_one_line_with_the_traceback_in_one_field(logger: str) -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)

    with structlog.contextvars.bound_contextvars(stage="feed", partition=3):
        try:
            int("x")
        except ValueError:
            logging.getLogger(logger).exception("Crashed\n%s", "and a second line")

    (crash,) = lines(out)
    assert (crash["logger"], crash["level"], crash["stage"], crash["partition"]) == (logger, "error", "feed", 3)
    assert str(crash["event"]).endswith("\nand a second line")
    assert str(crash["exception"]).startswith("Traceback")
    assert "ValueError" in str(crash["exception"])


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


def record(message: str, *arguments: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("aiokafka", level, "file", 1, message, arguments, None)


def counts(records: list[logging.LogRecord]) -> list[int]:
    return [record.__dict__["left_out"]["count"] for record in records]


def test_repeats_are_kept_back_and_counted_until_their_window_is_over() -> None:
    clock = Clock(0.0)
    repeats = Repeats(burst=2, window=10.0, clock=clock)

    shown = [repeats.admits(record("no broker %s", number)) for number in range(5)]
    clock.at = 9.9
    too_early = repeats.take_over()
    clock.at = 10.0

    assert shown == [True, True, False, False, False]
    assert too_early == []
    assert counts(repeats.take_over()) == [3]
    assert repeats.admits(record("no broker %s", 6))
    assert repeats.take_over(all_of_them=True) == []


def test_other_messages_and_levels_are_not_held_back_with_a_repeated_one() -> None:
    repeats = Repeats(burst=1, clock=Clock(0.0))

    assert repeats.admits(record("a"))
    assert not repeats.admits(record("a"))
    assert repeats.admits(record("b"))
    assert repeats.admits(record("a", level=logging.ERROR))


@pytest.mark.case("C06")
def test_the_one_warning_of_a_question_is_no_repeat_of_that_of_another() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)
    log = structlog.get_logger("stream_peer.kafka.worker.notices")

    for number in range(9):
        log.warning("question_noted", code="contradictory-times", feed="econ", question="q" * 200 + str(number))

    assert [str(line["question"])[-1] for line in lines(out)] == list("012345678")


def test_a_window_in_which_nothing_was_kept_back_leaves_no_line() -> None:
    clock = Clock(0.0)
    repeats = Repeats(burst=2, window=1.0, clock=clock)
    repeats.admits(record("a"))
    clock.at = 5.0

    assert repeats.take_over() == []
    assert repeats.admits(record("a"))


def test_what_is_remembered_of_kinds_does_not_grow_without_bound_and_no_count_is_lost() -> None:
    repeats = Repeats(burst=1, clock=Clock(0.0))
    shown, told = 0, []

    for number in range(3000):
        shown += repeats.admits(record(f"message {number // 2}"))
        told += repeats.take_over()

    assert len(repeats._kinds) <= 1000
    assert shown + sum(counts(told + repeats.take_over(all_of_them=True))) == 3000


def test_how_many_were_kept_back_is_a_line_of_its_own_before_the_next() -> None:
    out, clock = io.StringIO(), Clock(0.0)
    configure(Log(format="json"), stream=out)
    limited(Repeats(burst=1, window=1.0, clock=clock), out)
    log = structlog.get_logger("stream_peer.kafka.worker.faust_bridge")
    for _ in range(3):
        log.warning("again", partition=3)
    clock.at = 2.0
    log.warning("other")

    first, left_out, other = lines(out)
    assert (first["event"], other["event"]) == ("again", "other")
    assert (left_out["event"], left_out["of"], left_out["count"]) == ("repeats_left_out", "again 3", 2)
    assert (left_out["level"], left_out["logger"]) == ("warning", "stream_peer.kafka.worker.faust_bridge")


def limited(repeats: Repeats, out: io.StringIO) -> LimitedHandler:
    """A handler in the place of the configured one."""
    root = logging.getLogger()
    (configured,) = root.handlers
    handler = LimitedHandler(out, repeats)
    handler.setFormatter(configured.formatter)
    root.handlers[:] = [handler]
    return handler


def test_after_a_burst_its_count_comes_although_nothing_else_is_said() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)
    handler = limited(Repeats(burst=1, window=0.01), out)
    for _ in range(9):
        logging.getLogger("aiokafka").error("no broker")

    wait_until(lambda: sum(int(str(line.get("count", 0))) for line in lines(out)) > 0, 10, "the count never came")
    handler.close()
    shown = [line["event"] for line in lines(out)].count("no broker")
    assert sum(int(str(line.get("count", 0))) for line in lines(out)) == 9 - shown


def test_at_the_end_of_the_process_nothing_is_left_untold() -> None:
    script = (
        "import logging, structlog\n"
        "from stream_peer.serve.logs import configure\n"
        "from stream_peer.settings.process import Log\n"
        "configure(Log(format='json'))\n"
        "for _ in range(10): structlog.get_logger('stream_peer').warning('again')\n"
    )

    for end in ("", "from stream_peer.kafka.worker.process import leave\nleave(0, 'told to')\n"):
        done = subprocess.run([sys.executable, "-c", script + end], capture_output=True, text=True, check=True)
        said = [json.loads(line) for line in done.stderr.splitlines()]
        assert [line["count"] for line in said if line["event"] == "repeats_left_out"] == [7]


def test_our_own_notes_are_never_held_back() -> None:
    repeats = Repeats(burst=1, clock=Clock(0.0))
    notes = [logging.LogRecord("stream_peer.kafka", logging.INFO, "f", 1, "owned", (), None) for _ in range(5)]

    assert all(repeats.admits(note) for note in notes)


def test_our_warnings_about_different_things_are_different() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)

    for partition in range(8):
        structlog.get_logger("stream_peer").warning("input_lost", partition=partition)

    assert len(lines(out)) == 8


def test_starts_of_inner_services_and_retries_of_a_fresh_broker_are_left_out() -> None:
    out = io.StringIO()
    configure(Log(format="json"), stream=out)

    logging.getLogger("stream_peer.kafka.worker.worker").info("[^StageWorker]: Starting...")
    logging.getLogger("aiokafka.consumer").error("Group Coordinator Request failed: %s", "GroupCoordinatorNotAvailable")
    logging.getLogger("stream_peer.kafka.worker.worker").error("[^StageWorker]: Crashed")

    assert [line["event"] for line in lines(out)] == ["[^StageWorker]: Crashed"]
