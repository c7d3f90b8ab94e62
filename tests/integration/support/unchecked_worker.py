"""``stream-peer`` that takes topics as they are, though they are compacted or deleted sooner than it demands.

``python -m tests.integration.support.unchecked_worker``.
"""

from stream_peer.cli import main
from stream_peer.kafka.client import topic_plan

if __name__ == "__main__":
    topic_plan._DAY = 0
    main()
