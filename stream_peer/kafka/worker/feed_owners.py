"""Which member of the group owns the partition of a feed: the leader sends that to all members with each assignment.

Every member tells the leader its advertised address when it joins (Faust's ``canonical_url``), and with its assignment
each receives those of all: so an address that is named here was advertised by a member, at the newest assignment. A
static member that came back elsewhere is known at its old address until the next one. A worker that folds no feeds is
in another group, and asks the brokers for the assignments of that one.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from stream_peer.events import topics
from stream_peer.events.partitioning import partition_of
from stream_peer.kafka.worker.faust_bridge import aiokafka_options, owners_in_group
from stream_peer.kafka.worker.ownership import RunningApp
from stream_peer.kafka.worker.port import GroupMember, TopicPartition
from stream_peer.log.owners import Elsewhere, Here, Home, Owner, Unknown
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

    def __init__(self, options: Mapping[str, object], group: str, topic: str, clock: Callable[[], float]) -> None:
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
        self._app: RunningApp | None = None
        self._others: GroupMembers | None = None
        self._topic = topics.FEED_LOG
        self._partitions = 1

    def attach(self, settings: Settings, app: RunningApp | None, partitions: int, clock: Callable[[], float]) -> None:
        """Say whose group it is about.

        Parameters
        ----------
        settings : Settings
        app : RunningApp or None
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
        tp, (member, ownership) = TopicPartition(self._topic, partition), self._app
        owned = ownership.owned(tp)
        if owned is None:
            return _elsewhere(tp, member) if member.is_settled else Unknown("partitions are being reassigned")
        if owned.counting or owned.rebuilding is not None:
            return Unknown("the feed is being rebuilt")
        return Here(cast("Home", owned.stage))  # what folds the feed-log is one


def _elsewhere(tp: TopicPartition, member: GroupMember) -> Owner:
    url = member.owners(tp.topic).get(tp.partition)
    is_ours = url == member.address
    if is_ours and tp in member.assignment():
        return Unknown("the worker that owns the feed is still recovering it")
    if url is None or is_ours:
        return Unknown("no worker is known to own the feed; each needs an address of its own (http.advertise)")
    return Elsewhere(url)
