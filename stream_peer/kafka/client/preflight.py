"""Whether a broker answers and accepts our login, and if not, why: the clients only say that they failed."""

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kafka import errors as kafka
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, SettingFault, SettingsError
from stream_peer.kafka.client.security import client_options
from stream_peer.kafka.client.waiting import is_watched, say_waiting
from stream_peer.settings.process import Security, Settings
from stream_peer.settings.process.checks import broker_addresses

_ATTEMPT_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_ADVERTISED_SECONDS = 2.0  # for the certificate of a broker that another one names
_WRONG_NAMES = {62, 64}  # of OpenSSL: X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Validity ::= SEQUENCE { notBefore, notAfter }, each UTCTime (0x17) or GeneralizedTime (0x18).
_VALIDITY = re.compile(
    rb"\x30.(?:\x17\x0d|\x18\x0f)(\d{12}(?:\d\d)?Z)(?:\x17\x0d|\x18\x0f)(\d{12}(?:\d\d)?Z)", re.DOTALL
)


def preflight(settings: Settings, *, waiting: Callable[[str], None] | None = None) -> None:
    """Connect and log in once, waiting up to ``broker_patience`` for a broker that is not there yet.

    A command that a person watches does not wait if all host names are unknown: most likely they are misspelt. A worker
    waits: in a cluster a name exists only once the first broker behind it does.

    Parameters
    ----------
    settings : Settings
        Names the brokers and how to talk to them.
    waiting : callable or None
        Called once, with the reason, when the first attempt fails and more follow. Default: the listener of
        `tell_of_waiting`.

    Raises
    ------
    BrokerUnavailableError
        If no broker could be reached in that time, or at once if a person watches and no host is known.
    NotAuthorisedError
        If a broker refuses us: waiting would not help.
    SettingsError
        If our certificate cannot be used.
    """
    addresses = broker_addresses(settings.bootstrap)
    _check_own_certificate(settings.security)
    options = client_options(settings)
    tell: Callable[[str], None] | None = waiting or partial(say_waiting, settings)
    deadline = time.monotonic() + settings.broker_patience
    fault = ""
    while True:
        left = max(deadline - time.monotonic(), 0.1)
        faults = _attempt(addresses, options, left)
        if not faults:
            return
        # The end of the patience cuts the last attempt short: then the reason of the attempt before says more.
        if not fault or left >= _ATTEMPT_SECONDS or not all(isinstance(error, TimeoutError) for _, error in faults):
            fault = "; ".join(dict.fromkeys(_fault(host, error) for host, error in faults))
        if waiting is None and is_watched() and all(isinstance(error, socket.gaierror) for _, error in faults):
            msg = f"No broker can be asked at {settings.bootstrap}: {fault}."
            raise BrokerUnavailableError(msg)
        if time.monotonic() + _PAUSE_SECONDS >= deadline:
            break
        if tell is not None:
            tell(fault)
            tell = None
        time.sleep(_PAUSE_SECONDS)
    msg = f"No broker answered at {settings.bootstrap} within {settings.broker_patience:g}s: {fault}."
    raise BrokerUnavailableError(msg)


def _attempt(addresses: list[tuple[str, int]], options: dict[str, Any], left: float) -> list[tuple[str, Exception]]:
    """Nothing if one address lets us in, else each host with what was wrong."""
    faults: list[tuple[str, Exception]] = []
    for host, port in addresses:
        try:
            brokers = _connect(host, port, options, min(left, _ATTEMPT_SECONDS))
        except (OSError, kafka.KafkaError) as error:
            _raise_if_refused(error, f"{host}:{port}")
            faults.append((host, error))
        else:
            if context := options.get("ssl_context"):
                _check_certificates(context, [broker for broker in brokers if broker != (host, port)])
            return []
    return faults


def _check_certificates(context: ssl.SSLContext, brokers: Iterable[tuple[str, int]]) -> None:
    """Refuse certificates that do not fit the addresses which brokers advertise. A broker may be away."""
    for host, port in brokers:
        try:
            with socket.create_connection((host, port), _ADVERTISED_SECONDS) as plain:
                _speak_tls(context, plain, host)
        except ssl.SSLCertVerificationError as error:
            _raise_if_refused(error, f"{host}:{port}")
        except (OSError, kafka.KafkaError):
            continue


def _connect(host: str, port: int, options: dict[str, Any], patience: float) -> list[tuple[str, int]]:
    """Connect, log in, leave; return the addresses of all brokers, as this one names them.

    The first connection is our own: of one that fails, kafka-python keeps no more than a text.
    """
    context = options.get("ssl_context")
    with socket.create_connection((host, port), patience) as plain:
        if context is not None:
            _speak_tls(context, plain, host)
    return _log_in(f"{host}:{port}", options, patience)


def _speak_tls(context: ssl.SSLContext, plain: socket.socket, host: str) -> None:
    try:
        context.wrap_socket(plain, server_hostname=host).close()
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):  # no word on TLS: a broker that starts, or ends, does so too
        raise kafka.KafkaConnectionError from None


def _log_in(address: str, options: dict[str, Any], patience: float) -> list[tuple[str, int]]:
    net = NetworkSelector()
    manager = KafkaConnectionManager(net, **{**options, "bootstrap_servers": [address]})
    try:
        return list(net.run(_connected, manager, round(patience * 1000)))
    except kafka.KafkaTimeoutError:
        raise TimeoutError from None
    finally:
        manager.close()
        net.close()


async def _connected(manager: KafkaConnectionManager, milliseconds: int) -> list[tuple[str, int]]:
    (broker,) = manager.cluster.bootstrap_brokers()
    connection = manager.get_connection(broker.node_id, timeout_ms=milliseconds)
    await manager.wait_for(connection.init_future, milliseconds)
    if manager.config["ssl_context"] is None:
        return []
    await manager.cluster.refresh_metadata(broker.node_id)
    return [(each.host, each.port) for each in manager.cluster.brokers()]


def _raise_if_refused(error: Exception, address: str) -> None:
    """Faults that no waiting cures."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _WRONG_NAMES:
        msg = (
            f"The certificate of {address} is of another name ({error.verify_message}); use a name that it has, "
            "in bootstrap and in advertised.listeners of the broker."
        )
    elif isinstance(error, ssl.SSLCertVerificationError):
        msg = f"The certificate of {address} is not trusted ({error.verify_message}); see security.ca_file."
    elif isinstance(error, ssl.SSLError):
        msg = f"{address} does not speak TLS as we do ({_reason(error)}); see security.protocol and the port."
    elif isinstance(error, kafka.SaslAuthenticationFailedError):
        msg = f"{address} refuses the user or password; see security.username and security.password."
    elif isinstance(error, kafka.UnsupportedSaslMechanismError):
        msg = f"{address} does not offer the mechanism; see security.mechanism."
    elif isinstance(error, kafka.IllegalSaslStateError):
        msg = f"{address} expects another security.protocol than ours."
    else:
        return
    raise NotAuthorisedError(msg) from None


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "reason", None) or str(error)


def _fault(host: str, error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host {host} is not known ({error.strerror})"
    if isinstance(error, TimeoutError):
        return "the connection was not answered in time (is the port that of another protocol?)"
    if isinstance(error, kafka.KafkaConnectionError):
        return (  # kafka-python loses the answer to a wrong password if the end of the connection comes with it
            "it closed the connection (a wrong user or password, a client certificate that is missing or refused, or a "
            "port of another protocol)"
        )
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _check_own_certificate(security: Security) -> None:
    """With TLS 1.3 a broker refuses an expired client certificate without a word, so look before connecting."""
    if security.cert_file is None:
        return
    expires = _not_after(security.cert_file.read_text(encoding="utf-8"))
    if expires is not None and expires < datetime.now(tz=UTC):
        message = f"the certificate expired at {expires:%Y-%m-%d %H:%M}Z"
        raise SettingsError([SettingFault("security.cert_file", str(security.cert_file), message)])


def _not_after(pem: str) -> datetime | None:
    """When the first certificate of a PEM file expires: the second time of its validity."""
    block = _CERTIFICATE.search(pem)
    validity = _VALIDITY.search(ssl.PEM_cert_to_DER_cert(block.group(0))) if block else None
    if validity is None:
        return None
    text = validity.group(2).decode()
    century = "" if len(text) == 15 else "20" if text < "50" else "19"
    return datetime.strptime(f"{century}{text}", "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
