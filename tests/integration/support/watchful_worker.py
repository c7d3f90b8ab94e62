"""``stream-peer`` that compares its topics with the plan every second, not every 30 s.

``python -m tests.integration.support.watchful_worker``.
"""

from stream_peer.cli import main
from stream_peer.kafka.client.topics_watch import TopicsWatch

if __name__ == "__main__":
    TopicsWatch.__init__.__defaults__ = (1.0,)
    main()
