"""Before anything starts: a broker answers, lets us in, and has every topic in the shape that the stages rely on."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, TopicsError
from stream_peer.events import topics
from stream_peer.security import aiokafka_options
from stream_peer.settings import Settings

_PAUSE_SECONDS = 0.5
_TIMESTAMP_TYPE = "message.timestamp.type"
_REFUSALS = (
    kafka.AuthenticationFailedError,
    kafka.SaslAuthenticationFailed,
    kafka.UnsupportedSaslMechanismError,
    kafka.IllegalSaslStateError,
    kafka.TopicAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.GroupAuthorizationFailedError,
)


class Found(NamedTuple):
    """What the broker says: partitions by topic, and how forecast-events are stamped (None: not asked)."""

    partitions: Mapping[str, int]
    timestamp_type: str | None


def check(settings: Settings) -> None:
    """Wait for a broker up to ``broker_patience``, then look at the topics.

    Raises
    ------
    BrokerUnavailableError
        If no broker answered in that time.
    NotAuthorisedError
        If the broker refuses us.
    TopicsError
        Lists every topic that is missing or has another shape, and the command that mends it.
    """
    found = asyncio.run(_look(settings))
    faults = list(topic_faults(settings, found))
    if faults:
        command = f"stream-peer topics apply --bootstrap {settings.bootstrap}"
        prefix = f" --prefix {settings.prefix}" if settings.prefix else ""
        msg = f"{'; '.join(faults)}. Run `{command}{prefix}` (partition counts of topics with data cannot be mended)."
        raise TopicsError(msg)


def expected_partitions(settings: Settings) -> dict[str, int]:
    """Partition count of every topic by its physical name, changelogs included."""
    counts = settings.partitions
    by_logical = {
        topics.FORECAST_EVENTS: counts.forecast_events,
        topics.CONTROL_EVENTS: counts.control_events,
        topics.FEED_LOG: counts.feed_log,
        topics.DEAD_LETTERS: counts.dead_letters,
        **dict.fromkeys(topics.KEYED_BY_FEED, counts.feed_log),
        **dict.fromkeys(topics.KEYED_BY_QUESTION, counts.forecast_events),
    }
    changelogs = {settings.changelog("question"): counts.forecast_events, settings.changelog("feed"): counts.feed_log}
    return {settings.topic(logical): count for logical, count in by_logical.items()} | changelogs


def topic_faults(settings: Settings, found: Found) -> Iterator[str]:
    """What is wrong, one sentence a topic; of an embedded broker only that a topic is missing."""
    embedded = settings.broker == "embedded"
    for name, expected in expected_partitions(settings).items():
        actual = found.partitions.get(name)
        if actual is None:
            yield f"topic {name} is missing ({expected} partitions)"
        elif actual != expected and not embedded:
            yield f"topic {name} has {actual} partitions, the settings say {expected}"
    forecasts = settings.topic(topics.FORECAST_EVENTS)
    if not embedded and forecasts in found.partitions and found.timestamp_type not in (None, "LogAppendTime"):
        yield f"topic {forecasts} has {_TIMESTAMP_TYPE}={found.timestamp_type}, it must be LogAppendTime"


async def _look(settings: Settings) -> Found:
    deadline = time.monotonic() + settings.broker_patience
    options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
    while True:
        admin = AIOKafkaAdminClient(**options)
        try:
            await admin.start()
            return await _ask(admin, settings)
        except _REFUSALS as error:
            msg = f"{settings.bootstrap} refuses us: {error!r}"
            raise NotAuthorisedError(msg) from error
        except (kafka.KafkaError, OSError) as error:
            if time.monotonic() + _PAUSE_SECONDS >= deadline:
                msg = f"no broker answered at {settings.bootstrap} within {settings.broker_patience:g} s: {error}"
                raise BrokerUnavailableError(msg) from None
        finally:
            await admin.close()
        await asyncio.sleep(_PAUSE_SECONDS)


async def _ask(admin: Any, settings: Settings) -> Found:
    wanted = list(expected_partitions(settings))
    if settings.broker == "embedded":  # it makes topics when they are asked for
        described = await admin.describe_topics(wanted)
        described = await admin.describe_topics(wanted)
        return Found({topic["topic"]: len(topic["partitions"]) for topic in described if _exists(topic)}, None)
    await _ask_for_groups(admin, settings)
    described = [topic for topic in await admin.describe_topics() if topic["topic"] in set(wanted)]
    partitions = {topic["topic"]: len(topic["partitions"]) for topic in described if _exists(topic)}
    forecasts = settings.topic(topics.FORECAST_EVENTS)
    stamped = await _timestamp_type(admin, forecasts) if forecasts in partitions else None
    return Found(partitions, stamped)


async def _ask_for_groups(admin: Any, settings: Settings) -> None:
    """Look for the groups' coordinators: without the right to a group, a consumer would wait for ever in silence."""
    for stage in ("question", "feed"):
        if settings.stage in ("all", stage):
            group = settings.app_id(stage)
            try:
                await admin.find_coordinator(group)
            except kafka.GroupAuthorizationFailedError:
                msg = f"the user may not read with the group {group}; see the ACLs of `stream-peer topics plan`"
                raise NotAuthorisedError(msg) from None


def _exists(topic: Mapping[str, Any]) -> bool:
    return not topic["error_code"]


async def _timestamp_type(admin: Any, topic: str) -> str | None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {_TIMESTAMP_TYPE: None})
    for response in await admin.describe_configs([resource]):
        for _, _, _, _, entries in response.resources:
            for name, value, *_ in entries:
                if name == _TIMESTAMP_TYPE:
                    return str(value)
    return None
