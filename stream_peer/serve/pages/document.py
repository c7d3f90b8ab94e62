"""The skeleton of a page that refers to nothing outside of itself."""

from importlib import resources

from stream_peer.serve.pages.text import escape


def style_sheet() -> str:
    """The style sheet of every page; its first block names the colours."""
    return resources.files("stream_peer.serve.pages").joinpath("style.css").read_text(encoding="utf-8")


def document(title: str, body: str, script: str = "", *, style: str = "") -> str:
    """A whole page: the shared style sheet, a heading of that title, the body, and a script if there is one.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML that follows the heading.
    script : str
        JavaScript, run when everything is there.
    style : str
        CSS of this page alone, after the shared style sheet.

    Examples
    --------
    >>> page = document("A & B", "<p>text</p>")
    >>> "<title>A &amp; B</title>" in page, "<script>" in page
    (True, False)
    """
    closing = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style_sheet()}{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n{closing}</body>\n</html>\n"
    )
