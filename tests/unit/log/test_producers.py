"""What producers may say: each rule of ``producers_file`` as the question stage keeps it."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.events.rejections import Reason
from stream_peer.log.producers import PRODUCER_HEADER, Producer, Producers, producer_mac
from stream_peer.log.stage import Headers, Output
from tests.unit.questions.question_log import DAY, T0, Partition, event, forecast, question, resolution, stage

TOPIC = "prod.forecast-events"
KEY = b"key"
SECRETS = {"house": b"the key of house ", "weather": b"the key of weather", "asker": b"the key of asker  "}
KNOWN = (
    Producer(name="house", keys=(SECRETS["house"], b"the next of house"), experts=("ann", "llm-*")),
    Producer(name="weather", keys=(SECRETS["weather"],), experts=("ecmwf",), feeds=("rain", "wind-*")),
    Producer(name="asker", keys=(SECRETS["asker"],), may_ask=True, may_resolve=True, feeds=("rain", "default")),
)
REFUSE = Producers(KNOWN)
ACCEPT = Producers(KNOWN, "accept")


def signed(name: str, value: bytes, key: bytes | None = None, topic: str = TOPIC) -> Headers:
    mac = producer_mac(key or SECRETS[name], topic, KEY, value)
    return ((PRODUCER_HEADER, f"{name}:{mac}".encode()),)


def of(producers: Producers = REFUSE) -> Partition:
    return Partition(stage(producers=producers))


def reasons(outputs: list[Output]) -> list[str]:
    letters = [output for output in outputs if output.topic == topics.DEAD_LETTERS]
    return [dict(letter.headers)["stream-peer-reason"].decode() for letter in letters]


def said(partition: Partition, name: str, value: bytes, **how: Any) -> list[str]:
    """Why an event that a producer signs is refused; nothing if it is accepted."""
    return reasons(partition.send(value, headers=signed(name, value, **how)))


def unsigned(partition: Partition, value: bytes) -> list[str]:
    return reasons(partition.send(value))


def batch(**forecasts: float) -> bytes:
    return event("forecasts", question_id="q", at=T0, forecasts=forecasts)


# --- experts ---


def test_without_producers_everybody_may_say_everything() -> None:
    partition = Partition()

    outputs = partition.send(question(at=T0), forecast("ann", 0.5, T0), resolution(1, T0))

    assert reasons(outputs) == []


def test_a_producer_speaks_for_the_experts_that_its_patterns_name() -> None:
    partition = of()

    assert said(partition, "house", forecast("ann", 0.5, T0)) == []
    assert said(partition, "house", forecast("llm-3", 0.5, T0)) == []
    assert said(partition, "house", forecast("ann", None, T0)) == []
    assert partition.count("event", "forecast") == 3


@pytest.mark.parametrize("expert", ["Ann", "annie", "xllm-3", "ann\n", "ecmwf"])
def test_it_speaks_for_nobody_else(expert: str) -> None:
    partition = of()

    assert said(partition, "house", forecast(expert, 0.5, T0)) == [Reason.PRODUCER_FORBIDDEN]
    assert partition.count("event", "forecast") == 0


@pytest.mark.parametrize("probability", [0.5, None])
def test_nobody_speaks_for_an_expert_without_a_signature(probability: float | None) -> None:
    assert unsigned(of(), forecast("ann", probability, T0)) == [Reason.PRODUCER_UNKNOWN]
    assert unsigned(of(ACCEPT), forecast("ann", probability, T0)) == [Reason.PRODUCER_UNKNOWN]


def test_experts_that_no_pattern_covers_are_refused_or_accepted_as_the_file_says() -> None:
    other = forecast("zoe", 0.5, T0)

    assert unsigned(of(), other) == [Reason.PRODUCER_UNKNOWN]
    assert said(of(), "house", other) == [Reason.PRODUCER_FORBIDDEN]
    assert unsigned(of(ACCEPT), other) == []
    assert said(of(ACCEPT), "house", other) == []


def test_an_expert_that_was_renamed_needs_a_producer_by_its_new_id_too() -> None:
    partition = of(ACCEPT)
    partition.control(event("expert", feed="default", expert_id="ann", at=T0, rename="zoe"))

    assert unsigned(partition, forecast("zoe", 0.5, T0)) == [Reason.PRODUCER_UNKNOWN]
    assert unsigned(partition, forecast("yan", 0.5, T0)) == []
    assert said(partition, "house", forecast("ann", 0.5, T0)) == []


def test_a_header_that_proves_nothing_is_refused_for_experts_that_no_pattern_covers_too() -> None:
    other = forecast("zoe", 0.5, T0)

    assert said(of(ACCEPT), "house", other, key=b"guessed by someone") == [Reason.PRODUCER_UNKNOWN]


def test_a_batch_with_one_expert_of_another_producer_is_refused_as_a_whole() -> None:
    partition = of()

    assert said(partition, "house", batch(ann=0.5, ecmwf=0.2)) == [Reason.PRODUCER_FORBIDDEN]
    assert said(partition, "house", batch(ann=0.5, **{"llm-1": 0.2})) == []
    assert unsigned(of(ACCEPT), batch(zoe=0.5, ann=0.2)) == [Reason.PRODUCER_UNKNOWN]


# --- the signature ---


def test_a_batch_with_an_entry_that_cannot_be_used_needs_the_same_rights() -> None:
    partition = of()
    value = event("forecasts", question_id="q", at=T0, forecasts={"desk-1": 0.5, "x": "missing"})

    assert unsigned(partition, value) == [Reason.PRODUCER_UNKNOWN]


def test_each_key_of_a_producer_verifies() -> None:
    assert said(of(), "house", forecast("ann", 0.5, T0), key=b"the next of house") == []


def test_digits_of_a_signature_may_be_capitals() -> None:
    value = forecast("ann", 0.5, T0)
    name, mac = signed("house", value)[0][1].split(b":")

    assert reasons(of().send(value, headers=((PRODUCER_HEADER, name + b":" + mac.upper()),))) == []


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b":",
        b"house",
        b"house:",
        b"house:00",
        b"nobody:00",
        b"\xff\xfe:\xff",
        b"a" * 1000,
        b"house:" + b"\xc3\xa9" * 32,
    ],
)
def test_a_header_that_is_no_signature_is_refused(header: bytes) -> None:
    outputs = of().send(forecast("ann", 0.5, T0), headers=((PRODUCER_HEADER, header),))

    assert reasons(outputs) == [Reason.PRODUCER_UNKNOWN]


def test_a_signature_of_another_topic_is_refused() -> None:
    assert said(of(), "house", forecast("ann", 0.5, T0), topic="test.forecast-events") == [Reason.PRODUCER_UNKNOWN]


def test_two_signatures_are_refused() -> None:
    value = forecast("ann", 0.5, T0)

    outputs = of().send(value, headers=(*signed("house", value), *signed("house", value)))

    assert reasons(outputs) == [Reason.PRODUCER_UNKNOWN]


def test_an_absent_key_and_an_empty_one_have_different_signatures() -> None:
    assert producer_mac(b"k", TOPIC, None, b"{}") != producer_mac(b"k", TOPIC, b"", b"{}")


# --- questions, resolutions and feeds ---


def test_questions_and_resolutions_need_their_own_rights() -> None:
    asked, resolved = question(at=T0, feed="rain"), resolution(1, T0, feed="rain")

    assert [said(of(), "asker", asked), said(of(), "asker", resolved)] == [[], []]
    assert [said(of(), "weather", asked), said(of(), "weather", resolved)] == [[Reason.PRODUCER_FORBIDDEN]] * 2
    assert [unsigned(of(ACCEPT), asked), unsigned(of(ACCEPT), resolved)] == [[Reason.PRODUCER_UNKNOWN]] * 2


def test_a_signed_question_says_when_it_was_said() -> None:
    assert said(of(), "asker", question(feed="rain")) == [Reason.MISSING_FIELD]


def test_a_producer_speaks_in_the_feeds_that_its_patterns_name() -> None:
    assert said(of(), "weather", forecast("ecmwf", 0.5, T0, feed="rain")) == []
    assert said(of(), "weather", forecast("ecmwf", 0.5, T0, feed="wind-north")) == []
    assert said(of(), "weather", forecast("ecmwf", 0.5, T0, feed="politics")) == [Reason.PRODUCER_FORBIDDEN]
    assert said(of(), "weather", forecast("ecmwf", 0.5, T0)) == [Reason.PRODUCER_FORBIDDEN]  # of the feed default


def test_an_event_that_names_no_feed_is_said_in_the_feed_of_its_question() -> None:
    partition = of()
    said(partition, "asker", question(at=T0, feed="rain", opens_at=T0, closes_at=T0 + DAY))

    assert said(partition, "weather", forecast("ecmwf", 0.5, T0)) == []
    assert said(partition, "asker", resolution(1, T0 + DAY)) == []


def test_a_question_cannot_be_taken_from_a_feed_in_which_its_producer_has_no_rights() -> None:
    partition = of()
    said(partition, "house", forecast("ann", 0.5, T0, feed="politics"))

    assert said(partition, "weather", forecast("ecmwf", 0.5, T0, feed="rain")) == [Reason.PRODUCER_FORBIDDEN]
    assert said(partition, "asker", question(at=T0, feed="rain")) == [Reason.PRODUCER_FORBIDDEN]
    assert said(partition, "asker", resolution(1, T0, feed="rain")) == [Reason.PRODUCER_FORBIDDEN]


def test_a_question_that_was_asked_without_a_feed_is_in_the_feed_default_for_other_askers() -> None:
    thief = Producer(name="thief", keys=(b"the key of thief ",), may_ask=True, feeds=("rain",))
    partition = of(Producers((*KNOWN, thief)))
    said(partition, "asker", question(at=T0, opens_at=T0, closes_at=T0 + DAY))

    assert said(partition, "thief", question(at=T0 + 1, feed="rain"), key=b"the key of thief ") == [
        Reason.PRODUCER_FORBIDDEN
    ]
    assert said(partition, "asker", question(at=T0 + 1, feed="rain")) == []


@pytest.mark.parametrize("first", [question(at=T0), forecast("ann", 0.4, T0, feed="default")])
def test_only_who_may_ask_moves_a_question_to_another_feed(first: bytes) -> None:
    resolver = Producer(name="resolver", keys=(b"the resolver's key",), may_resolve=True)
    partition = of(Producers((*KNOWN, resolver), "accept"))
    said(partition, "house" if b"ann" in first else "asker", first)

    assert said(partition, "house", forecast("ann", 0.5, T0 + 1, feed="rain")) == [Reason.PRODUCER_FORBIDDEN]
    assert unsigned(partition, forecast("zoe", 0.5, T0 + 1, feed="rain")) == [Reason.PRODUCER_UNKNOWN]
    resolved = resolution(1, T0 + 1, feed="rain")
    assert said(partition, "resolver", resolved, key=b"the resolver's key") == [Reason.PRODUCER_FORBIDDEN]
    assert said(partition, "asker", resolution(1, T0 + 1, feed="rain")) == []


def test_a_forecast_that_names_the_former_feed_of_a_moved_question_is_accepted() -> None:
    partition = of()
    said(partition, "asker", question(at=T0, feed="default"))
    said(partition, "asker", question(at=T0 + 1, feed="rain"))

    assert said(partition, "house", forecast("ann", 0.5, T0 + 2, feed="default")) == []


@pytest.mark.parametrize("producers", [REFUSE, ACCEPT])
def test_a_batch_without_forecasts_is_refused_for_no_right_covers_it(producers: Producers) -> None:
    empty = event("forecasts", question_id="q", at=T0 + 1, forecasts={}, feed="rain")

    assert unsigned(of(producers), empty) == [Reason.MISSING_FIELD]
    assert said(of(producers), "house", empty) == [Reason.MISSING_FIELD]


def test_a_resolution_of_a_question_whose_history_has_gone_is_checked_by_its_feed() -> None:
    partition = of()
    said(partition, "asker", question(at=T0, feed="rain", opens_at=T0, closes_at=T0 + DAY))
    said(partition, "weather", forecast("ecmwf", 0.5, T0))
    partition.pass_to(T0 + 60 * DAY)
    assert partition.stage.plan_of("q") is None

    assert said(partition, "asker", resolution(1, T0 + 60 * DAY, feed="default")) == []
    assert said(partition, "weather", resolution(0, T0 + 61 * DAY)) == [Reason.PRODUCER_FORBIDDEN]


# --- elsewhere and afterwards ---


def elsewhere() -> str:
    return next(name for n in range(99) if partition_of(name := f"q{n}", 2) == 1)


def test_an_event_that_went_astray_is_forwarded_with_its_header_and_checked_at_home() -> None:
    astray = Partition(stage(partitions=2, producers=REFUSE))
    home = Partition(stage(partition=1, partitions=2, producers=REFUSE))
    good = forecast("ann", 0.5, T0, question_id=elsewhere())
    forged = forecast("ecmwf", 0.5, T0, question_id=elsewhere())
    forwarded = [astray.send(value, headers=signed("house", value))[0] for value in (good, forged)]

    found = [home.send(output.value, headers=output.headers) for output in forwarded]

    assert [output.partition for output in forwarded] == [1, 1]
    assert [reasons(outputs) for outputs in found] == [[], [Reason.PRODUCER_FORBIDDEN]]


def test_a_refused_event_leaves_its_question_and_the_clock_as_they_were() -> None:
    partition = of()
    before = partition.stage.snapshot()

    unsigned(partition, forecast("ann", 0.5, T0 + DAY))

    assert partition.stage.snapshot() == before
    assert partition.stage.clock == 0


def test_the_dead_letter_of_a_forgotten_expert_names_nobody_whoever_sent_it() -> None:
    partition = of()
    partition.control(event("expert", feed="econ", expert_id="ann", at=T0, forget=True))

    (letter,) = partition.send(forecast("ann", 0.5, T0, feed="econ"))

    assert dict(letter.headers)["stream-peer-reason"] == b"forgotten"
    assert (letter.key, letter.value) == (None, None)


def test_the_hash_tells_other_rules_and_other_keys_and_no_key() -> None:
    renamed = msgspec.structs.replace(KNOWN[0], experts=("ann",))
    rotated = msgspec.structs.replace(KNOWN[0], keys=(b"the next of house", SECRETS["house"]))
    other_key = msgspec.structs.replace(KNOWN[0], keys=(b"the next of house",))

    hashes = [Producers([*KNOWN[1:], first]).hash for first in (renamed, other_key, KNOWN[0])]

    assert len({*hashes, ACCEPT.hash}) == 4
    assert hashes[2] == REFUSE.hash == Producers([rotated, *KNOWN[1:]]).hash  # order is without meaning


def test_the_header_of_a_producer_is_the_one_that_is_verified() -> None:
    assert REFUSE.header("house", TOPIC, KEY, b"{}") == signed("house", b"{}")[0]
    assert REFUSE.header("nobody", TOPIC, KEY, b"{}") is None


# --- what the docs print ---


@pytest.mark.parametrize("key", [KEY, None, b""])
def test_the_example_of_the_docs_signs_as_the_service_verifies(repository: Path, key: bytes | None) -> None:
    page = (repository / "docs" / "events.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    printed: dict[str, Any] = {}

    exec(example, printed)  # noqa: S102 - it is ours

    made = printed["producer_header"]("house", SECRETS["house"], TOPIC, key, b"{}")
    assert made == (PRODUCER_HEADER, f"house:{producer_mac(SECRETS['house'], TOPIC, key, b'{}')}".encode())
    assert example.strip().count("\n") <= 10


def test_events_of_a_group_are_checked_as_those_of_its_parts_and_a_refused_one_adds_no_part() -> None:
    partition = of()
    group = {"question_id": "chair", "at": T0, "feed": "rain"}
    bo = event("forecast", expert_id="ecmwf", options={"Ada": 0.5, "Bo": 0.5}, **group)
    outcome = event("resolution", option="Ada", **group)

    assert said(partition, "weather", event("question", options=["Ada"], **group)) == [Reason.PRODUCER_FORBIDDEN]
    assert said(partition, "asker", event("question", options=["Ada"], **group)) == []
    assert said(partition, "house", bo) == [Reason.PRODUCER_FORBIDDEN]
    assert partition.stage.plan_of("chair::=Bo") is None
    assert said(partition, "weather", bo) == []
    assert partition.stage.plan_of("chair::=Bo") is not None
    assert said(partition, "weather", outcome) == [Reason.PRODUCER_FORBIDDEN]
    assert said(partition, "asker", outcome) == []
