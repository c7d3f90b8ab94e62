"""A broker inside this process, for demos and for tests where no Kafka can be had: librdkafka's mock cluster.

It speaks enough of Kafka for the whole service, and nothing survives the process. It has no compaction, no security,
always four partitions a topic, 5 MB a partition, and a fetch at the end of a log returns late: measure nothing on it.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import stamina

from stream_peer.errors import BrokerUnavailableError, SettingFault, SettingsError

PARTITIONS = 4
"""Of every topic of an embedded broker."""


class EmbeddedBroker:
    """Context manager: the broker lives from enter to exit, in threads of this process.

    Parameters
    ----------
    topics : iterable of str
        Physical names of topics that shall exist from the start.

    Raises
    ------
    SettingsError
        On enter, if the extra ``demo`` is not installed.

    Examples
    --------
    >>> with EmbeddedBroker(["forecast-events"]) as broker:
    ...     broker.bootstrap.startswith("127.0.0.1:")
    True
    """

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self._topics = list(topics)
        self._host: Any = None
        self.bootstrap = ""

    def __enter__(self) -> Self:
        self._host = _client_class()({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
        brokers = self._host.list_topics(timeout=10).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self.create_topics(self._topics)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host = None  # the mock cluster ends with the client that made it

    def create_topics(self, topics: Iterable[str]) -> None:
        """Make topics by asking for them, the only way that this broker knows; existing ones stay."""
        for topic in topics:
            self._touch(topic)

    @stamina.retry(on=BrokerUnavailableError, timeout=10.0, attempts=None, wait_initial=0.05, wait_max=0.5)
    def _touch(self, topic: str) -> None:
        found = self._host.list_topics(topic, timeout=10).topics[topic]
        if found.error is not None or len(found.partitions) != PARTITIONS:
            msg = f"the embedded broker does not make the topic {topic}: {found.error}"
            raise BrokerUnavailableError(msg)


def _client_class() -> Any:
    try:
        from confluent_kafka import Producer
    except ImportError:
        message = "the embedded broker needs confluent-kafka: pip install 'stream-peer[demo]'"
        raise SettingsError([SettingFault("broker", "embedded", message)]) from None
    return Producer
