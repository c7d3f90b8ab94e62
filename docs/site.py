"""The published documentation: one directory a release, and a page that lists them.

``python docs/site.py ARCHIVE VERSION TREE`` unpacks what ``make release`` packed into TREE/VERSION.
"""

import html
import re
import sys
import tarfile
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>stream_peer</title></head><body style="font-family: sans-serif; margin: 2rem">
<h1>stream_peer: documentation by release</h1>
<ul>
{links}
</ul></body></html>
"""


def add(archive: Path, version: str, tree: Path) -> None:
    """Unpack a release's pages, and list all releases, the newest first; a page of that release before is replaced."""
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        packed.extractall(tree / version)  # noqa: S202 - an archive of our own release
    names = [path.parent.name for path in tree.glob("*/index.html")]
    links = [
        f'<li><a href="{name}/">{name}</a></li>' for name in map(html.escape, sorted(names, key=_order, reverse=True))
    ]
    (tree / "index.html").write_text(PAGE.format(links="\n".join(links)), encoding="utf-8")
    (tree / ".nojekyll").touch()  # GitHub's pages leave out directories such as _static otherwise


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


if __name__ == "__main__":
    add(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
