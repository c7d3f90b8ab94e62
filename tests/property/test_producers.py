"""Whatever is altered in a signed record, or in its signature, it is not accepted any more."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from stream_peer.log.producers import PRODUCER_HEADER, Producer, Producers, producer_mac
from stream_peer.log.stage import Effects, Headers, LogRecord
from stream_peer.questions.stage import QuestionStage

NOW = 1_772_366_400_000
KEYS = {"house": b"the key of house", "rival": b"the key of rival"}
PRODUCERS = Producers(
    Producer(name=name, keys=(key,), experts=(f"{name}-*",), may_ask=True, may_resolve=True)
    for name, key in KEYS.items()
)
VALUES = (
    b'{"type":"forecast","question_id":"q","expert_id":"house-1","probability":0.5,"at":"2026-03-01T12:00:00Z"}',
    b'{"type":"forecasts","question_id":"q","forecasts":{"house-1":0.5},"at":"2026-03-01T12:00:00Z"}',
    b'{"type":"question","question_id":"q","at":"2026-03-01T12:00:00Z"}',
    b'{"type":"resolution","question_id":"q","outcome":1,"at":"2026-03-01T12:00:00Z"}',
)


class Sent(NamedTuple):
    """A record as it was signed, or as somebody altered it."""

    topic: str
    key: bytes | None
    value: bytes
    header: bytes


def signed(value: bytes, key: bytes | None, name: str = "house") -> Sent:
    mac = producer_mac(KEYS[name], "forecast-events", key, value)
    return Sent("forecast-events", key, value, f"{name}:{mac}".encode())


def is_accepted(sent: Sent) -> bool:
    stage = QuestionStage(topic=sent.topic, partition=0, partitions=1, feed_log_partitions=1, producers=PRODUCERS)
    effects = Effects()
    headers: Headers = ((PRODUCER_HEADER, sent.header),)
    stage.step(LogRecord(0, NOW, sent.key, sent.value, headers), effects)
    return any(kind == "event" for kind, _ in effects.counts)


def cut(content: bytes, place: int, instead: bytes) -> bytes:
    return content[:place] + instead + content[place + 1 :]


keys = st.none() | st.sampled_from([b"", b"q", b"\x00"])
values = st.sampled_from(VALUES)


@st.composite
def altered(draw: st.DrawFn) -> Sent:
    """A record of which one part is another than was signed."""
    sent = signed(draw(values), draw(keys))
    part = draw(st.sampled_from(["topic", "key", "value", "header", "moved", "name"]))
    if part == "topic":
        return sent._replace(topic=draw(st.sampled_from(["", "forecast-event", "x-forecast-events"])))
    if part == "key":
        return sent._replace(key=draw(keys.filter(lambda key: key != sent.key)))
    if part == "value":
        others = [value for value in VALUES if value != sent.value]
        return sent._replace(value=draw(st.sampled_from([*others, sent.value + b" ", sent.value.replace(b"1", b"0")])))
    if part == "moved":  # a byte goes from the value to the key
        return sent._replace(key=(sent.key or b"") + b" ", value=sent.value)
    if part == "name":
        return sent._replace(header=sent.header.replace(b"house", b"rival"))
    place = draw(st.integers(0, len(sent.header) - 1))
    instead = draw(st.binary(max_size=2).filter(lambda text: text.lower() != sent.header[place : place + 1]))
    return sent._replace(header=cut(sent.header, place, instead))


@given(sent=altered())
def test_an_altered_record_is_never_accepted(sent: Sent) -> None:
    assert not is_accepted(sent)


@given(value=values, key=keys, header=st.binary(max_size=80) | st.from_regex(rb"(house|rival):[0-9a-f]{64}"))
def test_a_header_that_somebody_made_up_is_never_accepted(value: bytes, key: bytes | None, header: bytes) -> None:
    assert not is_accepted(Sent("forecast-events", key, value, header))


@given(value=values, key=keys)
def test_what_was_signed_is_accepted_from_whoever_may_say_it(value: bytes, key: bytes | None) -> None:
    names_an_expert = b"house-1" in value

    assert is_accepted(signed(value, key))
    assert is_accepted(signed(value, key, "rival")) is not names_an_expert
