import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_peer.settings.feed.document import load_document
from stream_peer.settings.feed.model import FeedSettings, ShadowSettings, parse_duration
from stream_peer.settings.process import Secret, Security, Settings, leaves
from stream_peer.settings.process.shown import shown_duration, shown_feed_settings, shown_settings


@given(st.integers(0, 10**13))
def test_a_shown_duration_reads_back_as_itself(duration: int) -> None:
    assert parse_duration(shown_duration(duration)) == duration


def test_every_setting_is_shown_and_secrets_are_not() -> None:
    shown = dict(shown_settings(Settings(security=Security(password=Secret("hunter2")))))

    assert shown.keys() == leaves().keys()
    assert shown["security.password"] == "***"
    assert shown["session"] == "45s"


def test_shown_feed_settings_are_a_document_that_gives_them_again() -> None:
    settings = msgspec.structs.replace(
        FeedSettings(), grace=1500, quorum=4, shadows=(ShadowSettings(name="plain", stretch=False),)
    )
    document: dict[str, dict[str, object]] = {"defaults": {}}
    for path, value in shown_feed_settings(settings):
        outer, _, inner = path.partition(".")
        if inner:
            nested = document["defaults"].setdefault(outer, {})
            assert isinstance(nested, dict)
            nested[inner] = value
        else:
            document["defaults"][outer] = value

    assert load_document(document).default == settings


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
