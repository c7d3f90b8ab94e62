"""``stream-peer`` whose idle partitions look at the ends of their changelogs all the time, not once a minute.

``python -m tests.integration.support.looking_worker``.
"""

from stream_peer.cli import main
from stream_peer.kafka.worker import partition

if __name__ == "__main__":
    partition.LOOK_SECONDS = 0.0
    main()
