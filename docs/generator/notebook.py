"""The tutorial as a notebook: its code with what it prints, and the text between."""

import json
import re
from pathlib import Path

PAGE = "docs/tutorial.md"
NOTEBOOK = "examples/tutorial.ipynb"
CELLS = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<said>.*?)```\n)?", re.DOTALL)


def cells(page: str) -> list[tuple[str, str]]:
    """Each piece of code, and what it prints."""
    return [(found["code"], found["said"] or "") for found in CELLS.finditer(page)]


def files(root: Path) -> dict[str, str]:
    """The notebook."""
    page = (root / PAGE).read_text(encoding="utf-8")
    found, end = [], 0
    for match in CELLS.finditer(page):
        found += [_text(page[end : match.start()]), _code(match["code"], match["said"] or "")]
        end = match.end()
    found.append(_text(page[end:]))
    document = {
        "cells": [{"id": f"cell-{number}", **cell} for number, cell in enumerate(found)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return {NOTEBOOK: json.dumps(document, indent=1, ensure_ascii=False) + "\n"}


def _text(source: str) -> dict[str, object]:
    links = re.sub(r"\]\((?!http)", "](../docs/", source.strip())
    return {"cell_type": "markdown", "metadata": {}, "source": links.splitlines(keepends=True)}


def _code(source: str, said: str) -> dict[str, object]:
    lines = said.splitlines(keepends=True)
    printed = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    source_lines = source.rstrip("\n").splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": printed, "source": source_lines}
