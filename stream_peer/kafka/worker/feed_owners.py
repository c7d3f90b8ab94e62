"""Which member of the group owns the partition of a feed, as the group's leader told all members when it assigned.

Every member tells the leader its advertised address when it joins (Faust's ``canonical_url``), and with its assignment
each receives those of all: so an address that is named here was advertised by a member, at the newest assignment. A
static member that came back elsewhere is known at its old address until the next one. A worker that folds no feeds is
in another group, and asks the brokers what the members of that one were told.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.client.security import aiokafka_options
from stream_peer.kafka.worker.faust_bridge import owners_in_group
from stream_peer.kafka.worker.port import TopicPartition
from stream_peer.log.owners import Elsewhere, Here, Owner, Unknown
from stream_peer.settings.process import Settings

_KEPT_SECONDS = 2.0


class GroupMembers:
    """Owners of a topic's partitions in a group, asked for at most every two seconds.

    Parameters
    ----------
    options : mapping
        Of an aiokafka client.
    group, topic : str
    clock : callable
        Seconds.
    """

    def __init__(self, options: Mapping[str, Any], group: str, topic: str, clock: Callable[[], float]) -> None:
        self._options = options
        self._group, self._topic = group, topic
        self._clock = clock
        self._asking = asyncio.Lock()
        self._known: dict[int, str] = {}
        self._until = 0.0

    async def owners(self) -> Mapping[int, str]:
        """By partition, the address that its owner advertised; empty while it is not known."""
        async with self._asking:
            if self._clock() >= self._until:
                self._known = await owners_in_group(self._options, self._group, self._topic)
                self._until = self._clock() + _KEPT_SECONDS
            return self._known


class FeedOwners:
    """Owners of feeds, for a worker that may not have been built yet: ``attach`` it when it is."""

    def __init__(self) -> None:
        self._app: Any = None
        self._others: GroupMembers | None = None
        self._topic = topics.FEED_LOG
        self._partitions = 1

    def attach(self, settings: Settings, app: Any, partitions: int, clock: Callable[[], float]) -> None:
        """Say whose group it is about.

        Parameters
        ----------
        settings : Settings
        app : StageApp or None
            The feed app; None if this worker has none.
        partitions : int
            Of the feed-log.
        clock : callable
            Seconds.
        """
        self._app, self._topic, self._partitions = app, settings.topic(topics.FEED_LOG), partitions
        if app is None:
            options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
            self._others = GroupMembers(options, settings.app_id("feed"), self._topic, clock)

    async def of(self, feed: str) -> Owner:
        """The owner of a feed: of the partition of the feed-log that it belongs to."""
        partition = partition_of(feed, self._partitions)
        if self._others is not None:
            url = (await self._others.owners()).get(partition)
            return Unknown("no worker is known to own the feed") if url is None else Elsewhere(url)
        if self._app is None:
            return Unknown("the worker is starting")
        owned = self._app.ownership.keepers[self._topic].partitions.get(partition)
        if owned is not None:
            return Unknown("the feed is being rebuilt") if _is_unready(owned) else Here(owned.stage)
        if not self._app.started or self._app.rebalancing or not self._app.rebalancing_count:
            return Unknown("partitions are being reassigned")
        return self._elsewhere(partition)

    def _elsewhere(self, partition: int) -> Owner:
        members = self._app.assignor.external_topics_metadata()
        url = next((url for url, owned in members.items() if partition in owned.get(self._topic, ())), None)
        is_ours = url == str(self._app.conf.canonical_url)
        if is_ours and TopicPartition(self._topic, partition) in self._app.consumer.assignment():
            return Unknown("the worker that owns the feed is still recovering it")
        if url is None or is_ours:
            return Unknown("no worker is known to own the feed; each needs an address of its own (http.advertise)")
        return Elsewhere(url)


def _is_unready(partition: Any) -> bool:
    """Whether its sums are not yet, or no longer, those of its log."""
    return partition.counting or partition.refolding is not None
