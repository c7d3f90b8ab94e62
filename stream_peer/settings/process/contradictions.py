"""What no single setting's type tells: addresses that are none, and settings that are wrong together."""

from collections.abc import Iterator

from stream_peer.settings.process.addresses import broker_addresses
from stream_peer.settings.process.model import Partitions, Security, Settings

EMBEDDED_PARTITIONS = 4

Contradiction = tuple[tuple[str, ...], str]
"""The settings involved by path, the one to change first, and what is wrong."""


def process_contradictions(settings: Settings) -> Iterator[Contradiction]:
    """Contradictions between blocks, and a ``bootstrap`` that nobody could connect to."""
    try:
        broker_addresses(settings.bootstrap)
    except ValueError as error:
        yield ("bootstrap",), str(error)
    if settings.batch_deadline >= settings.session / 2:
        message = (
            f"is {settings.batch_deadline:g}s, but must be below half the session ({settings.session / 2:g}s): "
            "a worker that is stuck has to end before its partitions move"
        )
        yield ("batch_deadline", "session"), message
    if settings.broker != "embedded":
        return
    if settings.security.protocol != "plaintext":
        yield ("security.protocol", "broker"), "the embedded broker speaks plaintext only"
    if settings.compression != "none":
        yield ("compression", "broker"), "the embedded broker cannot store compressed records; use none"
    for name in Partitions.__struct_fields__:
        if getattr(settings.partitions, name) != EMBEDDED_PARTITIONS:
            yield (
                (f"partitions.{name}", "broker"),
                f"it makes {EMBEDDED_PARTITIONS} partitions a topic",
            )


def security_contradictions(security: Security) -> Iterator[Contradiction]:
    """Contradictions within the security block."""
    protocol, needs = "security.protocol", f"is needed by {security.protocol}, {security.mechanism}"
    sasl, by_token = security.protocol.startswith("sasl_"), security.mechanism == "OAUTHBEARER"
    if security.protocol == "sasl_plaintext" and not security.allow_plaintext_password:
        message = "sends credentials readable by anyone on the wire; use sasl_ssl, or set allow_plaintext_password"
        yield (protocol, "security.allow_plaintext_password"), message
    if sasl and by_token and security.token_file is None:
        yield ("security.token_file", protocol, "security.mechanism"), needs
    for name in ("username", "password"):
        value = getattr(security, name)
        if sasl and not by_token and not value:
            yield (f"security.{name}", protocol, "security.mechanism"), needs
        if not sasl and value:
            yield (f"security.{name}", protocol), f"would not be used by {security.protocol}; set sasl_ssl"
    yield from _file_contradictions(security)


def _file_contradictions(security: Security) -> Iterator[Contradiction]:
    protocol = "security.protocol"
    for name in ("ca_file", "cert_file", "key_file"):
        if getattr(security, name) is not None and not security.protocol.endswith("ssl"):
            yield (f"security.{name}", protocol), f"would not be used by {security.protocol}; set ssl or sasl_ssl"
    if security.key_file is not None and security.cert_file is None:
        yield ("security.key_file", "security.cert_file"), "needs cert_file beside it"
