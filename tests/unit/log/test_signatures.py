"""What is believed to be the service's own: a record at its place, with its content, under a key of the release."""

from collections.abc import Callable

import pytest

from stream_peer.events import topics
from stream_peer.events.feed_log import Source
from stream_peer.log.signatures import MAC_HEADER, Signatures, is_signed, names_ours
from stream_peer.log.sources import SOURCE_HEADER, source_header, source_of
from stream_peer.log.stage import Headers, LogRecord, Output

KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"
SOURCE = Source(topics.FORECAST_EVENTS, 3, 0, 17, 0)
SENT = Output(topics.FORECAST_EVENTS, b"q", b"{}", 5, 2, (("trace", b"1"),))
OURS = Signatures((KEY,), "cluster", "topic")


def record(headers: Headers, key: bytes | None = b"q", value: bytes | None = b"{}") -> LogRecord:
    return LogRecord(9, 5, key, value, headers)


def signed(signatures: Signatures = OURS, sent: Output = SENT, source: Source | None = SOURCE) -> LogRecord:
    output = signatures.signed(sent, source)
    return record(output.headers, output.key, output.value)


def test_what_the_service_signed_is_believed_as_it_is() -> None:
    written = signed()

    assert OURS.believed(written, 2) is written
    assert source_of(written.headers) == SOURCE
    assert written.headers[0] == ("trace", b"1")


def test_a_record_without_a_source_is_signed_too() -> None:
    written = signed(source=None)

    assert OURS.believed(written, 2) is written
    assert is_signed(written.headers)
    assert source_of(written.headers) is None


def test_the_signature_is_the_documented_hmac() -> None:
    """Worked out by hand, as another language would: each field after its length in eight bytes."""
    import hmac

    source = b'["forecast-events",3,0,17,0]'
    fields = (b"cluster", b"topic", b"2", source, b"q", b"{}")
    message = b"".join(len(field).to_bytes(8, "big") + field for field in fields)

    assert dict(signed().headers)[MAC_HEADER] == hmac.new(KEY, message, "sha256").hexdigest().encode()


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(lambda: signed(Signatures((OTHER,), "cluster", "topic")), id="another key"),
        pytest.param(lambda: signed(Signatures((b"",), "cluster", "topic")), id="no key"),
        pytest.param(lambda: signed(Signatures((KEY,), "mirror", "topic")), id="another cluster"),
        pytest.param(lambda: signed(Signatures((KEY,), "cluster", "made anew")), id="another topic"),
        pytest.param(lambda: signed(Signatures((KEY,), "clustert", "opic")), id="fields that run together alike"),
        pytest.param(lambda: signed(sent=SENT._replace(partition=3)), id="another partition"),
        pytest.param(lambda: signed()._replace(value=b"[]"), id="another value"),
        pytest.param(lambda: signed()._replace(value=None), id="no value"),
        pytest.param(lambda: signed()._replace(key=b"r"), id="another key of the record"),
        pytest.param(lambda: signed()._replace(key=None), id="no key of the record"),
        pytest.param(lambda: signed(sent=SENT._replace(key=b""))._replace(key=None), id="an empty key for none"),
        pytest.param(lambda: record([source_header(SOURCE)]), id="no signature"),
        pytest.param(lambda: record([source_header(SOURCE), (MAC_HEADER, b"")]), id="an empty signature"),
        pytest.param(lambda: record([(MAC_HEADER, bytes(65_536))]), id="64 KB of a signature"),
        pytest.param(lambda: record([*signed().headers, signed().headers[-1]]), id="the signature twice"),
        pytest.param(lambda: record([*signed().headers, source_header(SOURCE)]), id="the source twice"),
        pytest.param(lambda: record([*signed(source=None).headers, *signed().headers[1:2]]), id="a source added"),
        pytest.param(
            lambda: record([(n, v) for n, v in signed().headers if n != SOURCE_HEADER]), id="the source taken away"
        ),
    ],
)
def test_what_anybody_else_wrote_or_copied_is_read_without_headers_of_ours(forged: Callable[[], LogRecord]) -> None:
    believed = OURS.believed(forged(), 2)

    assert not names_ours(believed.headers)
    assert (believed.offset, believed.key, believed.value) == (9, forged().key, forged().value)
    assert [header for header in believed.headers if header[0] == "trace"] == list(believed.headers)


def test_a_null_header_is_no_signature() -> None:
    nulls: list[tuple[str, bytes]] = [(SOURCE_HEADER, None), (MAC_HEADER, None)]  # type: ignore[list-item] # as Kafka may have it

    assert OURS.believed(record(nulls), 2).headers == ()


def test_every_key_verifies_and_the_first_signs() -> None:
    before, during, after = (Signatures(keys, "cluster", "topic") for keys in ((KEY,), (OTHER, KEY), (OTHER,)))

    for written in (signed(before), signed(during)):
        assert during.believed(written, 2) is written
    assert after.believed(signed(during), 2).headers != after.believed(signed(before), 2).headers


def test_a_topic_that_was_created_again_has_signatures_of_its_own() -> None:
    signatures = Signatures((KEY,), "cluster", "topic")
    former = signed(signatures)

    signatures.bind("cluster", "made anew")
    present = signed(signatures)

    assert signatures.believed(present, 2) is present
    assert not names_ours(signatures.believed(former, 2).headers)


def test_a_record_that_is_signed_again_keeps_no_former_header_of_ours() -> None:
    again = OURS.signed(SENT._replace(headers=(*signed().headers, source_header(SOURCE))), SOURCE)

    assert [name for name, _ in again.headers] == ["trace", SOURCE_HEADER, MAC_HEADER]
