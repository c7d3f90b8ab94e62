"""Pages in a real browser: laid out at several widths, and measured there."""

import json
import re
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from tests.infra.support.tools import program, run, said

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_HEIGHT = 1000
_SECONDS = 60

# A text overlaps another one if their boxes share more than a pixel each way; hidden text has no box.
_MEASURE = """
const boxes = root => {
  const found = [], walker = root.createTreeWalker(root.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('style, script, .unseen')) continue;
    const range = root.createRange(); range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width && box.height) found.push({text: node.data.trim(), box});
  }
  return found.sort((one, other) => one.box.top - other.box.top);
};
const overlaps = found => {
  const pairs = [];
  found.forEach((one, place) => {
    for (let next = place + 1; next < found.length && found[next].box.top < one.box.bottom - 4; next++) {
      const other = found[next];
      if (Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left) > 1)
        pairs.push(one.text + ' | ' + other.text);
    }
  });
  return pairs;
};
addEventListener('load', () => {
  const measured = [...document.querySelectorAll('iframe')].map(frame => {
    const root = frame.contentDocument, found = boxes(root);
    const widest = Math.max(...found.map(each => each.box.right), 0);
    return {
      width: frame.clientWidth,
      needs: Math.max(root.documentElement.scrollWidth, Math.ceil(widest)),
      overlaps: overlaps(found),
      text: root.body.innerText,
      images: root.images.length,
    };
  });
  document.body.textContent = JSON.stringify(measured);
});
"""


class Layout(NamedTuple):
    """A page at a width: how wide its content is, which texts lie on each other, and what a reader sees."""

    width: int
    needs: int
    overlaps: list[str]
    text: str
    images: int


def layouts(page: str, widths: tuple[int, ...], directory: Path) -> list[Layout]:
    """The page laid out at each width, in pixels; skips the test if there is no browser."""
    frames = "".join(
        f'<iframe width="{width}" height="{_HEIGHT}" style="border:0" srcdoc="{escape(page)}"></iframe>'
        for width in widths
    )
    path = directory / "measured.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}<script>{_MEASURE}</script>", encoding="utf-8")
    profile = f"--user-data-dir={directory / 'profile'}"
    result = run(program("chromium"), *_FLAGS, profile, "--dump-dom", path.as_uri(), seconds=_SECONDS)
    body = re.search(r"<body>(\[.*\])</body>", result.stdout, re.DOTALL)
    assert body, said(result)
    return [Layout(**each) for each in json.loads(unescape(body.group(1)))]
