"""The settings as the options of each Kafka client: one mapping for all clients."""

import logging
import ssl
from pathlib import Path
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.settings.process import Secret, Security, Settings

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


def ssl_context(security: Security) -> ssl.SSLContext | None:
    """How TLS is spoken: the authorities trusted and our own certificate; None for protocols without TLS.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    if security.protocol not in ("ssl", "sasl_ssl"):
        return None
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
    except (ssl.SSLError, OSError) as error:
        raise _unusable("ca_file", security.ca_file, error) from None
    if security.cert_file is None:
        return context
    try:
        context.load_cert_chain(security.cert_file, security.key_file)
    except (ssl.SSLError, OSError) as error:
        raise _unusable("cert_file", security.cert_file, error) from None
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
    return SettingsError([SettingFault(f"security.{name}", str(file), f"cannot be loaded ({reason})")])


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
