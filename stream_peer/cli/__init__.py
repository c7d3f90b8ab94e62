"""The command line. Commands are imported when they are called, so that ``--help`` is quick."""

import os
import signal
import sys

if sys.argv[1:2] == ["worker"]:  # told to stop before it runs, it ends with 0: nothing is begun
    for number in (signal.SIGINT, signal.SIGTERM):
        # No exception: Python drops one that comes while it finalises an object, and the worker would go on.
        signal.signal(number, lambda *_: os._exit(0))

from stream_peer.cli.group import cli, main

__all__ = ["cli", "main"]
