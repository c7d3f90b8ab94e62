"""``stream-peer`` on a machine whose time of day is wrong, by as many seconds as a file says; it may jump.

``python -m tests.integration.support.wrong_clock``. The environment names the file (``CLOCK``).
"""

import os
import time
from pathlib import Path

from stream_peer.cli import main


def shift() -> None:
    """Have the process read a wrong time of day. Steady seconds stay as they are, as in a machine that is set."""
    file, of_machine = Path(os.environ["CLOCK"]), time.time_ns

    def time_ns() -> int:
        return of_machine() + int(file.read_text()) * 1_000_000_000

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


if __name__ == "__main__":
    shift()
    main()
