"""The status page in a real browser, with nobody, a few and ten thousand experts, and with names meant to break it."""

from pathlib import Path

import pytest

from stream_peer.serve.pages.status import FEEDS_SHOWN, StatusView, status_page
from tests.infra.support.browser import layouts
from tests.unit.serve.pages.test_status import HOSTILE, crowd, expert, view, weights

WIDTHS = (390, 1280)

LARGE = [crowd("large", 10_000), *(crowd(f"feed-{number:02}", 200) for number in range(FEEDS_SHOWN - 1))]
PAGES = {
    "nobody": view(ready=False, reason="stream-peer-question waits for its partitions"),
    "three": view(weights("economy", expert("ann", 0.5, 0.2), expert("bob", 0.3, 0.7), expert("cleo", 0.2, 0.1))),
    "large": view(*LARGE),
    "hostile": view(
        *(weights(name, *(expert(each, 0.2, 0.1) for each in HOSTILE), reasons=HOSTILE) for name in HOSTILE)
    ),
}


@pytest.mark.parametrize("shown", PAGES.values(), ids=PAGES)
def test_nothing_overlaps_and_nothing_is_wider_than_the_window(shown: StatusView, tmp_path: Path) -> None:
    for layout in layouts(status_page(shown), WIDTHS, tmp_path):
        assert layout.needs <= layout.width, f"{layout.needs} px at a width of {layout.width}"
        assert layout.overlaps == []
        assert layout.images == 0
        assert "Forecaster weights" in layout.text


def test_what_lies_on_each_other_or_beyond_the_edge_is_noticed(tmp_path: Path) -> None:
    crossed = '<p style="position:absolute;top:9px">one</p><p style="position:absolute;top:12px">two</p>'
    wide = '<p style="width:500px;position:absolute;top:80px">words</p>'

    narrow, broad = layouts(f"<!DOCTYPE html><body>{crossed}{wide}", WIDTHS, tmp_path)

    assert narrow.needs == 508
    assert broad.needs <= 1280
    assert narrow.overlaps == broad.overlaps == ["one | two"]
