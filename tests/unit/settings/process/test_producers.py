"""The file of producers: what is read, and what is wrong with it, all at once."""

import re
from pathlib import Path

import pytest

from stream_peer.errors import SettingsError
from stream_peer.log.producers import Producer, Producers
from stream_peer.settings.process import Settings, read_producers
from stream_peer.settings.process.checks import agreement_hash

KEY = b"0123456789abcdef"


def written(folder: Path, text: str, **keys: bytes) -> Path:
    for name, content in keys.items():
        (folder / name).write_bytes(content)
    file = folder / "producers.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def read(file: Path) -> Producers | None:
    return read_producers(Settings(producers_file=file))


def faults(file: Path) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        read(file)
    assert {fault.origin for fault in caught.value.faults} == {f"file {file}"}
    return {fault.path: fault.message for fault in caught.value.faults}


def test_without_the_setting_there_are_no_producers() -> None:
    assert read_producers(Settings()) is None


def test_a_file_names_producers_with_keys_and_rights(tmp_path: Path) -> None:
    text = """
        others: accept
        producers:
          house: {key_file: house.key, experts: [ann, "llm-*"], feeds: [rain]}
          no: {key_file: %s, may_ask: true, may_resolve: true}
    """
    file = written(
        tmp_path, text % (tmp_path / "no.key"), **{"house.key": b"\xef\xbb\xbf" + KEY + b"\n", "no.key": KEY * 2}
    )

    expected = Producers(
        [
            Producer(name="house", keys=(KEY,), experts=("ann", "llm-*"), feeds=("rain",)),
            Producer(name="no", keys=(KEY * 2,), may_ask=True, may_resolve=True),
        ],
        "accept",
    )
    found = read(file)
    assert found is not None
    assert found.hash == expected.hash


def test_all_faults_are_named_at_once_with_their_paths(tmp_path: Path) -> None:
    text = """
        other: accept
        producers:
          a: {key_file: short, experts: ann}
          b: {key_file: none-such, experts: [""], may_resolve: maybe}
          "c d": {key_file: good}
          e: {key_file: good, expert: [x], experts: [x], feeds: []}
          f: [x]
          g: {experts: [g]}
    """
    found = faults(written(tmp_path, text, short=b"0123456789", good=KEY))

    assert found.keys() == {
        "other",
        "producers.a.key_file",
        "producers.a.experts",
        "producers.b.key_file",
        "producers.b.experts",
        "producers.b.may_resolve",
        "producers.c d",
        "producers.e.expert",
        "producers.e.feeds",
        "producers.e.key_file",
        "producers.f",
        "producers.g.key_file",
    }
    assert found["other"] == "no such setting; did you mean others?"
    assert "key 1 has less than 16 bytes: `openssl rand -hex 32 > short` makes one" in found["producers.a.key_file"]
    assert "No such file" in found["producers.b.key_file"]
    assert found["producers.e.key_file"] == "holds a key of producer c d as well"


def test_a_producer_that_may_say_nothing_is_a_fault(tmp_path: Path) -> None:
    text = "producers: {a: {key_file: good, may_ask: false}}"

    assert "may say nothing" in faults(written(tmp_path, text, good=KEY))["producers.a"]


@pytest.mark.parametrize("text", ["", "others: accept", "producers: {}", "producers:", "[]", "a: [", "producers: 3"])
def test_a_file_that_names_no_producer_is_refused(tmp_path: Path, text: str) -> None:
    assert faults(written(tmp_path, text))


def test_no_key_stands_in_a_message(tmp_path: Path) -> None:
    text = "producers: {a: {key: 0123456789abcdef, key_file: short, experts: [a]}}"

    assert not any("0123456789" in said for said in faults(written(tmp_path, text, short=b"0123456789")).values())


def test_workers_with_other_producers_do_not_agree(tmp_path: Path) -> None:
    text = "producers: {a: {key_file: key, experts: [%s]}}"
    one = read(written(tmp_path, text % "ann", key=KEY))
    other = read(written(tmp_path, text % "bob", key=KEY))

    hashes = {agreement_hash(Settings(), b"", producers=each) for each in (None, one, other)}

    assert len(hashes) == 3


def test_the_file_that_the_docs_print_is_right(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs" / "settings.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    file = written(tmp_path, text, **{"weather-house.key": KEY, "platform.key": KEY * 2})

    found = read(file)

    assert found is not None
    assert len(found) == 2
