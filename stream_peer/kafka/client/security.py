"""The security block as the options of each Kafka client: one mapping, so that no client is forgotten."""

import ssl
from pathlib import Path
from typing import Any

from stream_peer.errors import SettingFault, SettingsError
from stream_peer.kafka.client.record_headers import read_any_names
from stream_peer.settings.process import Secret, Security

ISOLATION = "read_committed"
"""Of every consumer: no record is read before its transaction is committed, and none of an aborted one ever."""


def aiokafka_options(security: Security) -> dict[str, Any]:
    """Options of aiokafka's clients, of our batch producer, and the material for Faust's credentials.

    Whoever asks for them has a consumer read records whatever the names of their headers.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    read_any_names()
    options = _options(security)
    if _by_token(security):
        options["sasl_oauth_token_provider"] = _aiokafka_tokens(_token_file(security))
    return options


def kafka_python_options(security: Security) -> dict[str, Any]:
    """Options of kafka-python's clients.

    Raises
    ------
    SettingsError
        If a certificate, key or authority cannot be loaded.
    """
    options = _options(security)
    if _by_token(security):
        options["sasl_oauth_token_provider"] = _kafka_python_tokens(_token_file(security))
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


def _options(security: Security) -> dict[str, Any]:
    options: dict[str, Any] = {"security_protocol": security.protocol.upper()}
    context = ssl_context(security)
    if context is not None:
        options["ssl_context"] = context
    if not security.protocol.startswith("sasl_"):
        return options
    options["sasl_mechanism"] = security.mechanism
    if not _by_token(security):
        password = security.password or Secret("")
        options |= {"sasl_plain_username": security.username, "sasl_plain_password": password.reveal()}
    return options


def _by_token(security: Security) -> bool:
    return security.protocol.startswith("sasl_") and security.mechanism == "OAUTHBEARER"


def _token_file(security: Security) -> Path:
    if security.token_file is None:
        raise SettingsError([SettingFault("security.token_file", "security", "is needed by OAUTHBEARER")])
    return security.token_file


def _unusable(name: str, file: Path | None, error: ssl.SSLError | OSError) -> SettingsError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "no PEM that can be used"
    return SettingsError([SettingFault(f"security.{name}", str(file), f"cannot be loaded ({reason})")])


def _read_token(file: Path) -> str:
    """The token as it is now: whoever renews it replaces the file, and the next login reads it."""
    return file.read_text(encoding="ascii").strip()


def _aiokafka_tokens(file: Path) -> object:
    from aiokafka.abc import AbstractTokenProvider

    class TokenFile(AbstractTokenProvider):
        async def token(self) -> str:
            return _read_token(file)

    return TokenFile()


def _kafka_python_tokens(file: Path) -> object:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class TokenFile(AbstractTokenProvider):
        def token(self) -> str:
            return _read_token(file)

        def extensions(self) -> dict[str, str]:
            return {}

    return TokenFile()
