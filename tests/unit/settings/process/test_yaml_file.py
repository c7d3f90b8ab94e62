"""Settings files are read as YAML 1.2 reads them, and what is no settings file is a fault and no crash."""

import math

import pytest
import yaml

from stream_peer.settings.process.yaml_file import read_yaml


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
