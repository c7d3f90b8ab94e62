"""The client's copy of ``stream_peer/events/outputs.py``.

Where the service's own has the words of a status, the copy takes any text: a later release may have more of them, and
an older client goes on reading.
"""

import re
from pathlib import Path

SOURCE = "stream_peer/events/outputs.py"
COPY = "client/stream_peer_client/outputs.py"
WORDS = re.compile(r'Literal\[\s*"[^]]*\]')
_HEADER = f"# Made of {SOURCE} by `make generated`. A status may be any word: later ones are read as well.\n"


def files(root: Path) -> dict[str, str]:
    """The copy: its path in the repository, and its content."""
    return {COPY: _HEADER + WORDS.sub("str", (root / SOURCE).read_text(encoding="utf-8"))}
