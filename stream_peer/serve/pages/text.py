"""Text of others in HTML and SVG."""

import html

from stream_peer.events.spelling import spelt


def escape(text: str) -> str:
    r"""Text that a browser shows as it is: no markup, no control characters, no mark that turns text round.

    Examples
    --------
    >>> print(escape("<b>ann\u202e"))
    &lt;b&gt;ann\u202e
    """
    return html.escape(spelt(text))
