"""A server in a process that may open few files; prints its port, and serves until its stdin ends."""

import asyncio
import os
import resource
import sys

from tests.unit.serve.http.serving import serving

SPARE = 24
"""Descriptors beside those that a process has open when its server starts."""


async def serve() -> None:
    """Serve until nobody is left who wants it."""
    limit = len(os.listdir("/proc/self/fd")) + SPARE
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    async with serving() as client:
        sys.stdout.write(f"{client.server.url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
