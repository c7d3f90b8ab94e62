"""A value means what it looks like, in a flag and in a file (YAML 1.2); any other is a fault and no crash."""

import math

import pytest
import yaml

from stream_peer.errors import SettingsError
from stream_peer.settings.process import load
from stream_peer.settings.process.yaml_file import read_yaml


def message_of(path: str, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(None, {}, {path: text})
    (fault,) = caught.value.faults
    return fault.message


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45.0), ("45", 45.0), ("1500ms", 1.5), ("2m", 120.0), ("0.5h", 1800.0)]
)
def test_durations_are_text_with_a_unit_or_seconds(text: str, seconds: float) -> None:
    assert load(None, {}, {"broker_patience": text}).settings.broker_patience == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("64MB", 64_000_000), ("64 mb", 64_000_000), ("1MiB", 1_048_576), ("200000", 200_000)]
)
def test_sizes_are_text_with_a_unit_or_bytes(text: str, size: int) -> None:
    assert load(None, {}, {"snapshot_every.bytes": text}).settings.snapshot_every.bytes == size


@pytest.mark.parametrize("text", ["true", "false"])
def test_switches_are_true_or_false(text: str) -> None:
    settings = load(None, {}, {"security.allow_plaintext_password": text}).settings

    assert settings.security.allow_plaintext_password is (text == "true")


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("gather", "51ms", "must be <= 0.05s, got '51ms'"),
        ("gather", "soon", "'soon' is no duration such as 7d, 24h, 5m, 60s, 500ms"),
        ("session", "0s", "must be > 0.0s, got '0s'"),
        ("http.port", "x", "Expected `int`, got 'x'"),
        ("http.port", "65536", "must be <= 65535, got '65536'"),
        ("stage", "both", "must be one of all, question, feed, got 'both'"),
        ("snapshot_every.bytes", "64XB", "'64XB' is no size such as 64MB, 500KB, 1GiB"),
        ("prefix", "a b", "Expected `str` matching regex '^[A-Za-z0-9._-]{0,100}$', got 'a b'"),
        ("partitions.feed_log", "0", "must be >= 1, got '0'"),
        ("secret_file", "/none", "cannot be read (No such file or directory), got '/none'"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(path: str, text: str, message: str) -> None:
    assert message_of(path, text) == message


def test_gathering_takes_at_most_fifty_milliseconds() -> None:
    assert load(None, {}, {"gather": "50ms"}).settings.gather == 0.05


@pytest.mark.parametrize(
    "text",
    [
        *(
            "worker-0:8080",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:x",
            "http://a:70000",
            "http://a:",
            "http://a..b",
        ),
        *(
            "http://u:p@a",
            "http://:p@a",
            "http://@a",
            "http://a/?b",
            "http://a?",
            "http://a#",
            "http://a/#",
            "http://é",
        ),
        *(
            "http://a/é",
            "http://a\\b",
            "http://a/\\b",
            "http://<b>",
            "http://%00",
            "http://[::1",
            "http://[::1]x",
            "a\nb",
        ),
    ],
)
def test_an_address_that_nobody_could_be_sent_to_is_refused(text: str) -> None:
    assert "must be the URL of a server" in message_of("http.advertise", text)


@pytest.mark.parametrize("text", ["http://worker-0.workers:8080", "https://[::1]:8443/peer", "HTTP://10.0.0.1"])
def test_an_address_is_kept_as_it_is_but_for_the_slash_at_its_end(text: str) -> None:
    assert load(None, {}, {"http.advertise": f"{text}/"}).settings.http.advertise == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("off", "off"),
        ("no", "no"),
        ("7", 7),
        ("-3", -3),
        ("0x1F", 31),
        ("010", "010"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("-.inf", -math.inf),
        ("7d", "7d"),
        ("null", None),
        ("", None),
    ],
)
def test_a_value_is_what_it_looks_like(text: str, value: object) -> None:
    read = read_yaml(text)

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("name", ["1", "007", "1.50", "true", "null", "2020-01-01", "0x10", "1:30"])
def test_a_name_is_text_as_it_is_written(name: str) -> None:
    assert read_yaml(f"feeds: {{{name}: {{grace: 1s}}}}") == {"feeds": {name: {"grace": "1s"}}}


def test_settings_can_be_merged_from_an_anchor() -> None:
    text = "a: &a {7: 1, y: 2}\nb: {<<: *a, y: 3}"

    assert read_yaml(text) == {"a": {"7": 1, "y": 2}, "b": {"7": 1, "y": 3}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &a {x: *a}", "recursive"),
        ("a: &a [*a]", "recursive"),
        ("{[1]: 2}", "a name must be text"),
        ("{? {a: 1} : 2}", "a name must be text"),
        ("a: 1\na: 2", "a stands twice"),
        ('a: "\\ud800"', "no text that can be stored"),
        ('"\\udfff": a', "no text that can be stored"),
        ("a: 1" + "0" * 5000, "is no int"),
        ("a: !!int ''", "is no int"),
        ("a: !!bool maybe", "is no bool"),
        ("a: !!timestamp soon", "is no timestamp"),
        ("a: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_said_and_no_crash(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError, match=problem):
        read_yaml(text)
