"""How the documentation is built: ``make docs``."""

import re
from pathlib import Path

_package = (Path(__file__).parent.parent / "stream_peer" / "__init__.py").read_text(encoding="utf-8")

project = "stream_peer"
author = "The stream_peer authors"
release = re.findall(r'__version__ = "(.+)"', _package)[0]
version = release

extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated", "measured"]
html_theme = "furo"
html_title = f"stream_peer {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
