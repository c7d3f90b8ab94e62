"""flag > environment > file > default, for any setting and any set of sources that name it."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stream_peer.settings.process import flag_of, leaves, load
from stream_peer.settings.process.shown import shown_settings

SOURCES = ("file", "environment", "flag")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bootstrap": st.sampled_from(["a:1", "b:2", "c:3"]),
    "prefix": st.sampled_from(["a-", "b-"]),
    "stage": st.sampled_from(["all", "question", "feed"]),
    "session": st.integers(50, 300),
    "broker_patience": st.integers(1, 300),
    "http.port": st.integers(0, 65_535),
    "snapshot_every.records": st.integers(1, 10**6),
    "log.level": st.sampled_from(["debug", "info", "warning", "error"]),
    "partitions.feed_log": st.integers(1, 64),
}
given_values = st.fixed_dictionaries({}, optional={s: st.fixed_dictionaries({}, optional=VALUES) for s in SOURCES})


def nested(values: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for path, value in values.items():
        *blocks, name = path.split(".")
        block = content
        for outer in blocks:
            block = block.setdefault(outer, {})
        block[name] = value
    return content


@given(given_values)
def test_the_strongest_source_that_names_a_setting_decides_it(sources: dict[str, dict[str, Any]]) -> None:
    known = leaves()
    environment = {known[path].variable: str(value) for path, value in sources.get("environment", {}).items()}
    flags = {path: str(value) for path, value in sources.get("flag", {}).items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "settings.yaml"
        file.write_text(json.dumps(nested(sources.get("file", {}))))
        loaded = load(file, environment, flags)

    plain = load(None, {}, {path: str(v) for s in SOURCES for path, v in sources.get(s, {}).items()})
    assert dict(shown_settings(loaded.settings)) == dict(shown_settings(plain.settings))
    for path in VALUES:
        strongest = next((source for source in reversed(SOURCES) if path in sources.get(source, {})), "default")
        origin = {"flag": f"flag {flag_of(path)}", "environment": f"environment {known[path].variable}"}
        assert loaded.origins[path] == origin.get(strongest, f"file {file}" if strongest == "file" else "default")
