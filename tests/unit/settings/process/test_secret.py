import json

import msgspec
import pytest

from stream_peer.settings.process import Secret, Security, Settings

SECRET = Secret("hunter2")


@pytest.mark.parametrize(
    "shown", [str(SECRET), repr(SECRET), f"{SECRET}", f"{[SECRET]}", json.dumps(SECRET, default=str)]
)
def test_a_secret_never_shows_its_text(shown: str) -> None:
    assert "hunter2" not in shown
    assert "***" in shown


def test_settings_with_a_secret_can_be_shown_and_encoded() -> None:
    settings = Settings(security=Security(password=SECRET))

    assert "hunter2" not in repr(settings)
    assert b"hunter2" not in msgspec.json.encode(settings, enc_hook=str)
    assert settings.secrets() == (SECRET,)


def test_secrets_compare_by_their_text() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
    assert Secret("a").reveal() == "a"
