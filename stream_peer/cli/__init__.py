"""The command line. Commands are imported when they are called, so that ``--help`` is quick."""

import os
import signal
import sys

if sys.argv[1:2] == ["worker"]:  # told to stop in the second or two that imports take, a worker ends with 0
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

from stream_peer.cli.group import cli, main

__all__ = ["cli", "main"]
