"""How the documentation is built: ``make docs``."""

import re
from collections.abc import Callable
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_package = (Path(__file__).parent.parent / "stream_peer" / "__init__.py").read_text(encoding="utf-8")

project = "stream_peer"
author = "The stream_peer authors"
release = re.findall(r'__version__ = "(.+)"', _package)[0]
version = release

extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated", "measured"]
html_theme = "furo"
html_title = f"stream_peer {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_math_renderer = "mathml"


def _formula(element: str, display: str) -> Callable[[HTML5Translator, nodes.Element], None]:
    """What writes a formula as MathML, which browsers show without a script.

    Raises
    ------
    ValueError
        If LaTeX is left in it.
    """

    def visit(page: HTML5Translator, node: nodes.Element) -> None:
        formula = convert(node.astext(), display=display)
        if "\\" in formula or ">&<" in formula:  # what it does not know it leaves as it is
            msg = f"not understood: {node.astext()}"
            raise ValueError(msg)
        page.body.append(f'<{element} class="math">{formula}</{element}>')
        raise nodes.SkipNode

    return visit


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    renderers = {
        "inline_renderers": (_formula("span", "inline"), None),
        "block_renderers": (_formula("div", "block"), None),
    }
    app.add_html_math_renderer("mathml", **renderers)
