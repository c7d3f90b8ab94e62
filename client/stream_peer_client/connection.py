"""How to talk to the brokers: the service's own settings, by the same names, as options of kafka-python."""

import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from kafka import errors as kafka
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.selector import NetworkSelector

from stream_peer_client.errors import BrokersUnavailableError, ConnectionSettingsError, NotAuthorisedError

PROTOCOLS = ("plaintext", "ssl", "sasl_ssl", "sasl_plaintext")
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
ENVIRONMENT_PREFIX = "STREAM_PEER_"

_EMBEDDED_VERSION = (2, 0)
"""The newest protocol whose requests the demo's embedded broker answers. It does not tell its version itself."""
_DEFAULT_PORT = 9092
_PROBE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Security:
    """The block ``security`` of the service's settings.

    Parameters
    ----------
    protocol : str
        ``plaintext``, ``ssl`` (with ``cert_file`` it is mTLS), ``sasl_ssl`` or ``sasl_plaintext``.
    mechanism : str
        How a ``sasl_`` protocol logs in: ``SCRAM-SHA-512``, ``SCRAM-SHA-256``, ``PLAIN`` or ``OAUTHBEARER``.
    username, password : str, optional
        Of PLAIN and SCRAM.
    ca_file, cert_file, key_file : path, optional
        PEM files. Each connection reads them as they are then.
    token_file : path, optional
        Holds the token of OAUTHBEARER; each login reads it.
    allow_plaintext_password : bool
        Permits ``sasl_plaintext``, whose password everybody on the wire can read.

    Raises
    ------
    ConnectionSettingsError
        If the settings contradict each other.
    """

    protocol: str = "plaintext"
    mechanism: str = "SCRAM-SHA-512"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | Path | None = None
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    token_file: str | Path | None = None
    allow_plaintext_password: bool = False

    def __post_init__(self) -> None:
        """Refuse what no connection could use."""
        _check(self.protocol in PROTOCOLS, f"security.protocol is {self.protocol!r}, not one of {', '.join(PROTOCOLS)}")
        _check(
            self.mechanism in MECHANISMS,
            f"security.mechanism is {self.mechanism!r}, not one of {', '.join(MECHANISMS)}",
        )
        _check(
            self.protocol != "sasl_plaintext" or self.allow_plaintext_password,
            "security.protocol sasl_plaintext sends the password readable by anyone on the wire; use sasl_ssl, "
            "or set allow_plaintext_password",
        )
        if self.protocol.startswith("sasl_"):
            needs = ("token_file",) if self.mechanism == "OAUTHBEARER" else ("username", "password")
            for name in needs:
                _check(bool(getattr(self, name)), f"security.{name} is needed by {self.protocol}, {self.mechanism}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Of the variables that the service reads: ``STREAM_PEER_SECURITY__PROTOCOL`` and so on.

        ``STREAM_PEER_SECURITY__PASSWORD_FILE`` names a file with the password.

        Raises
        ------
        ConnectionSettingsError
            If a value cannot be used.
        """
        prefix = f"{ENVIRONMENT_PREFIX}SECURITY__"
        given: dict[str, Any] = {
            each.name: value for each in fields(cls) if (value := environment.get(prefix + each.name.upper()))
        }
        if file := environment.get(f"{prefix}PASSWORD_FILE"):
            try:
                given["password"] = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                msg = f"security.password_file {file} cannot be read: {error}"
                raise ConnectionSettingsError(msg) from None
        given["allow_plaintext_password"] = given.get("allow_plaintext_password", "").lower() in {
            "true",
            "yes",
            "on",
            "1",
        }
        return cls(**given)

    def options(self) -> dict[str, Any]:
        """What kafka-python calls these settings.

        Raises
        ------
        ConnectionSettingsError
            If a certificate, key or authority cannot be loaded.
        """
        options: dict[str, Any] = {"security_protocol": self.protocol.upper()}
        if self.protocol in {"ssl", "sasl_ssl"}:
            self.tls()
            options |= {"ssl_cafile": self.ca_file, "ssl_certfile": self.cert_file, "ssl_keyfile": self.key_file}
        if not self.protocol.startswith("sasl_"):
            return options
        options["sasl_mechanism"] = self.mechanism
        if self.mechanism == "OAUTHBEARER":
            return {**options, "sasl_oauth_token_provider": _TokenFile(Path(self.token_file or ""))}
        return {**options, "sasl_plain_username": self.username, "sasl_plain_password": self.password}

    def tls(self) -> ssl.SSLContext:
        """TLS by the files as they are now.

        Raises
        ------
        ConnectionSettingsError
            If one cannot be loaded.
        """
        name, file = "ca_file", self.ca_file
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file is not None:
                name, file = "cert_file", self.cert_file
                context.load_cert_chain(self.cert_file, self.key_file)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error.strerror or "no PEM that can be used"
            msg = f"security.{name} {file} cannot be loaded ({reason})"
            raise ConnectionSettingsError(msg) from None
        return context


class _TokenFile(AbstractTokenProvider):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def token(self) -> str:
        return self._file.read_text(encoding="ascii").strip()


def _check(holds: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not holds:
        raise ConnectionSettingsError(message)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the brokers are, how to talk to them, and which topics are the service's.

    Parameters
    ----------
    bootstrap : str
        ``host:port`` of brokers, separated by commas.
    prefix : str
        That of the service's topics, e.g. ``acme-``.
    security : Security
    broker : str
        ``embedded`` for the demo's own broker, else ``kafka``.
    """

    bootstrap: str
    prefix: str = ""
    security: Security = Security()
    broker: str = "kafka"

    def __post_init__(self) -> None:
        """Refuse addresses that nobody could connect to."""
        self.addresses()
        _check(self.broker in {"kafka", "embedded"}, f"broker is {self.broker!r}, neither kafka nor embedded")

    def addresses(self) -> list[tuple[str, int]]:
        """Hosts and ports of the brokers; the port is 9092 unless given."""
        found = []
        for part in filter(None, (part.strip() for part in self.bootstrap.split(","))):
            host, colon, port = part.rpartition(":")
            if not colon or part.endswith("]"):
                host, port = part, str(_DEFAULT_PORT)
            is_address = port.isdecimal() and 0 < int(port) < 65_536 and bool(host.strip("[]")) and "/" not in host
            _check(is_address, f"bootstrap {part!r} is not host:port")
            found.append((host.strip("[]"), int(port)))
        _check(bool(found), "bootstrap names no broker")
        return found

    def options(self) -> dict[str, Any]:
        """What each client of kafka-python gets.

        Raises
        ------
        ConnectionSettingsError
            If a certificate, key or authority cannot be loaded.
        """
        options = {"bootstrap_servers": self.bootstrap.split(","), **self.security.options()}
        return {**options, "api_version": _EMBEDDED_VERSION} if self.broker == "embedded" else options

    def check(self) -> None:
        """Connect and log in once: the consumer of kafka-python says only that no broker answers, never why.

        Raises
        ------
        BrokersUnavailableError
            If no broker lets us in.
        NotAuthorisedError
            If one refuses the login.
        """
        options, reasons = self.options(), []
        for host, port in self.addresses():
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            try:
                self._connect(host, port)
                _log_in({**options, "bootstrap_servers": [address]})
            except _REFUSED as error:
                msg = f"{address} refuses the login ({error}); see security."
                raise NotAuthorisedError(msg) from None
            except (OSError, kafka.KafkaError) as error:
                reasons.append(f"{address}: {_reason(error)}")
            else:
                return
        msg = f"No broker answers. {'; '.join(reasons)}."
        raise BrokersUnavailableError(msg)

    def _connect(self, host: str, port: int) -> None:
        with socket.create_connection((host, port), _PROBE_SECONDS) as plain:
            if self.security.protocol in {"ssl", "sasl_ssl"}:
                self.security.tls().wrap_socket(plain, server_hostname=host).close()


_REFUSED = (kafka.SaslAuthenticationFailedError, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError)


def _log_in(options: dict[str, Any]) -> None:
    net = NetworkSelector()
    manager = KafkaConnectionManager(net, **options)
    try:
        net.run(_connected, manager)
    finally:
        manager.close()
        net.close()


async def _connected(manager: KafkaConnectionManager) -> None:
    (broker,) = manager.cluster.bootstrap_brokers()
    milliseconds = round(_PROBE_SECONDS * 1000)
    connection = manager.get_connection(broker.node_id, timeout_ms=milliseconds)
    await manager.wait_for(connection.init_future, milliseconds)


def _reason(error: OSError | kafka.KafkaError) -> str:
    if isinstance(error, socket.gaierror):
        return "the host is not known"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); see security.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS as we do ({error.reason}); see security.protocol and the port"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return (  # kafka-python loses the broker's answer if the end of the connection comes with it
        "it ends the connection: a wrong user or password, another security.protocol, no client certificate, "
        "or it starts just now"
    )
