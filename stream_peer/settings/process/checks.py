"""What settings must agree on: among themselves, and (by a hash) among all workers of a deployment."""

import hashlib
import json
from collections.abc import Iterator

from stream_peer.log.draws import fingerprint
from stream_peer.log.producers import Producers
from stream_peer.settings.process.model import Gateway, Partitions, Registry, Security, Settings
from stream_peer.settings.process.shown import shown_settings


def broker_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Hosts and ports of ``bootstrap``; the port is 9092 unless given.

    Raises
    ------
    ValueError
        If there is none, a port is no number, or a protocol stands before one (``PLAINTEXT://``).

    Examples
    --------
    >>> broker_addresses("kafka-1:9093, [::1]:9094,localhost")
    [('kafka-1', 9093), ('::1', 9094), ('localhost', 9092)]
    """
    addresses = []
    for part in filter(None, (part.strip() for part in bootstrap.split(","))):
        scheme, slashes, _ = part.partition("://")
        if slashes:
            msg = f"{part!r} is not host:port: leave {scheme}:// out; security.protocol says how to talk to the brokers"
            raise ValueError(msg)
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            host, port = part, "9092"
        if not port.isdecimal() or not 0 < int(port) < 65_536 or not host.strip("[]"):
            msg = f"{part!r} is not host:port"
            raise ValueError(msg)
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        msg = "names no broker"
        raise ValueError(msg)
    return addresses


def host_and_port(host: str, port: int) -> str:
    """An address as it stands in a URL.

    Examples
    --------
    >>> host_and_port("127.0.0.1", 8080), host_and_port("::1", 80)
    ('127.0.0.1:8080', '[::1]:80')
    """
    return f"{f'[{host}]' if ':' in host else host}:{port}"


AGREED = (
    "prefix",
    "id",
    "broker",
    "store",
    "start",
    "on_recreated",
    "partitions.forecast_events",
    "partitions.control_events",
    "partitions.feed_log",
    "partitions.dead_letters",
)
"""Settings that decide what a worker makes of its input, or where it puts it. Secret, signing key, producers do too."""


def agreement_hash(
    settings: Settings, secret: bytes, signing_key: bytes = b"", producers: Producers | None = None
) -> str:
    """Names the settings that all workers must share, secrets by their fingerprints, the producers by their hash.

    Examples
    --------
    >>> alike = agreement_hash(Settings(), b"a"), agreement_hash(Settings(instance="other", session=9.0), b"a")
    >>> len(set(alike)), agreement_hash(Settings(id="other"), b"a") in alike, agreement_hash(Settings(), b"b") in alike
    (1, False, False)
    """
    shown = dict(shown_settings(settings))
    agreed = [fingerprint(secret), fingerprint(signing_key), *((path, shown[path]) for path in AGREED)]
    if producers is not None:
        agreed.append(("producers_file", producers.hash))
    return hashlib.blake2b(json.dumps(agreed).encode(), digest_size=4).hexdigest()


EMBEDDED_PARTITIONS = 4

Contradiction = tuple[tuple[str, ...], str]
"""The settings involved by path, the one to change first, and what is wrong."""


def process_contradictions(settings: Settings) -> Iterator[Contradiction]:
    """Contradictions between blocks, and a ``bootstrap`` that nobody could connect to."""
    try:
        broker_addresses(settings.bootstrap)
    except ValueError as error:
        yield ("bootstrap",), str(error)
    if settings.broker != "embedded":
        return
    if settings.security.protocol != "plaintext":
        yield ("security.protocol", "broker"), "the embedded broker speaks plaintext only"
    if settings.compression != "none":
        yield ("compression", "broker"), "the embedded broker cannot store compressed records; use none"
    for name in Partitions.__struct_fields__:
        if getattr(settings.partitions, name) != EMBEDDED_PARTITIONS:
            yield ((f"partitions.{name}", "broker"), f"it makes {EMBEDDED_PARTITIONS} partitions a topic")


def gateway_contradictions(gateway: Gateway) -> Iterator[Contradiction]:
    """Files of TLS that would not be used."""
    for name in ("key_file", "client_ca_file"):
        if getattr(gateway, name) is not None and gateway.cert_file is None:
            yield (f"gateway.{name}", "gateway.cert_file"), "needs cert_file beside it"


def registry_contradictions(registry: Registry) -> Iterator[Contradiction]:
    """Credentials that would not be used, or that everybody could read."""
    if (registry.username is None) != (registry.password is None):
        yield ("registry.username", "registry.password"), "one of them is of no use without the other"
    if registry.password is not None and (registry.url or "").lower().startswith("http:"):
        yield ("registry.url", "registry.password"), "sends the password readable by anyone on the wire; use https"


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
