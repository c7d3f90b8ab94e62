"""The settings as the options of each Kafka client: one mapping for all clients."""

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import structlog
from kafka.net.sasl.oauth import AbstractTokenProvider

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.settings.process import Gateway, Secret, Security, Settings

log = structlog.get_logger(__name__)

ISOLATION = "read_committed"
"""Of every consumer: no record is read before its transaction is committed, and none of an aborted one ever."""

_EMBEDDED_VERSION = (2, 0)
"""The newest protocol of Kafka whose requests the embedded broker answers. It does not tell its version itself."""


def client_options(settings: Settings) -> dict[str, Any]:
    """What each client of kafka-python gets: where the brokers are, and how to talk to them.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its errors reach us as exceptions
    options = {"bootstrap_servers": settings.bootstrap.split(","), **security_options(settings.security)}
    file = token_file(settings.security)
    if file is not None:
        options["sasl_oauth_token_provider"] = _TokenFile(file)
    if settings.broker == "embedded":
        options["api_version"] = _EMBEDDED_VERSION
    return options


class RenewedContext(ssl.SSLContext):
    """Each connection begins with the files as they are: certificates are replaced while a process runs.

    Raises
    ------
    SettingsError
        If the files cannot be loaded at the start. Later, connections begin with those that could be.
    """

    def __init__(self, _protocol: int, files: Sequence[Path | None], load: Callable[[], ssl.SSLContext]) -> None:
        self._files = [file for file in files if file is not None]
        self._load = load
        self._versions = _versions(self._files)
        self._loaded = load()

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection of asyncio."""
        return self._newest().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Begin a connection of kafka-python."""
        return self._newest().wrap_socket(*arguments, **options)

    def _newest(self) -> ssl.SSLContext:
        if (versions := _versions(self._files)) != self._versions:
            self._versions = versions
            try:
                self._loaded = self._load()
            except SettingsError as error:
                log.warning("certificates_not_renewed", reason=str(error))
            else:
                log.info("certificates_renewed", files=[str(file) for file in self._files])
        return self._loaded


def _versions(files: Sequence[Path]) -> list[tuple[int, ...]]:
    """What changes when a file is replaced; a file that is not there has none."""
    found = [file.stat() for file in files if file.exists()]
    return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in found]


def ssl_context(security: Security) -> ssl.SSLContext | None:
    """How TLS is spoken: the authorities trusted and our own certificate; None for protocols without TLS.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    if security.protocol not in ("ssl", "sasl_ssl"):
        return None
    files = security.ca_file, security.cert_file, security.key_file
    return RenewedContext(ssl.PROTOCOL_TLS_CLIENT, files, lambda: _loaded(security))


def server_context(gateway: Gateway) -> ssl.SSLContext | None:
    """How the gateway speaks TLS: with its certificate, and to clients with or without one; None: it does not.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    if gateway.cert_file is None:
        return None
    files = gateway.cert_file, gateway.key_file, gateway.client_ca_file
    return RenewedContext(ssl.PROTOCOL_TLS_SERVER, files, lambda: _loaded_server(gateway))


def _loaded_server(gateway: Gateway) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(str(gateway.cert_file), gateway.key_file)
    except (ssl.SSLError, OSError) as error:
        raise _unusable("gateway.cert_file", gateway.cert_file, error) from None
    if gateway.client_ca_file is not None:
        try:
            context.load_verify_locations(gateway.client_ca_file)
        except (ssl.SSLError, OSError) as error:
            raise _unusable("gateway.client_ca_file", gateway.client_ca_file, error) from None
        context.verify_mode = ssl.CERT_OPTIONAL  # probes have none, and others may have a token
    return context


def _loaded(security: Security) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
    except (ssl.SSLError, OSError) as error:
        raise _unusable("security.ca_file", security.ca_file, error) from None
    if security.cert_file is None:
        return context
    try:
        context.load_cert_chain(security.cert_file, security.key_file)
    except (ssl.SSLError, OSError) as error:
        raise _unusable("security.cert_file", security.cert_file, error) from None
    return context


def security_options(security: Security) -> dict[str, Any]:
    """What both client libraries call by the same names: all but the provider of tokens.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    options: dict[str, Any] = {"security_protocol": security.protocol.upper()}
    context = ssl_context(security)
    if context is not None:
        options["ssl_context"] = context
    if not security.protocol.startswith("sasl_"):
        return options
    options["sasl_mechanism"] = security.mechanism
    if security.mechanism != "OAUTHBEARER":
        password = security.password or Secret("")
        options |= {"sasl_plain_username": security.username, "sasl_plain_password": password.reveal()}
    return options


def token_file(security: Security) -> Path | None:
    """The file that holds the token; None if the settings log in otherwise.

    Raises
    ------
    SettingsError
        If the settings log in by token, and name no file.
    """
    if not security.protocol.startswith("sasl_") or security.mechanism != "OAUTHBEARER":
        return None
    if security.token_file is None:
        raise SettingsError([SettingFault("security.token_file", "security", "is needed by OAUTHBEARER")])
    return security.token_file


def _unusable(name: str, file: Path | None, error: ssl.SSLError | OSError) -> SettingsError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "no PEM that can be used"
    return SettingsError([SettingFault(name, str(file), f"cannot be loaded ({reason})")])


def read_token(file: Path) -> str:
    """The token as it is now: a renewal replaces the file, and the next login reads it."""
    return file.read_text(encoding="ascii").strip()


class _TokenFile(AbstractTokenProvider):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def token(self) -> str:
        return read_token(self._file)

    def extensions(self) -> dict[str, str]:
        return {}
