"""The command line. Commands are imported when they are called, so that ``--help`` is quick."""

from stream_peer.cli.group import cli, main

__all__ = ["cli", "main"]
