"""``stream-peer`` in a process that cannot write to any file, its log neither."""

import resource

from stream_peer.cli import main

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    main()
