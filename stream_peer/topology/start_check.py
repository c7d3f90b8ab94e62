"""Before anything starts: what no look at the topics shows. That they are as wanted was checked before, by ``cli``."""

import asyncio
import time
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, TopicsError
from stream_peer.events import topics
from stream_peer.security import aiokafka_options
from stream_peer.settings import Settings

_PAUSE_SECONDS = 0.5
_REFUSALS = (
    kafka.AuthenticationFailedError,
    kafka.SaslAuthenticationFailed,
    kafka.UnsupportedSaslMechanismError,
    kafka.IllegalSaslStateError,
    kafka.TopicAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.GroupAuthorizationFailedError,
)


def check(settings: Settings) -> None:
    """Wait for a broker up to ``broker_patience``. Ask Kafka for our groups, an embedded broker for our topics.

    Raises
    ------
    BrokerUnavailableError
        If no broker answered in that time.
    NotAuthorisedError
        If the broker refuses us, or a group to us.
    TopicsError
        If an embedded broker does not make a topic.
    """
    asyncio.run(_ask(settings))


async def _ask(settings: Settings) -> None:
    deadline = time.monotonic() + settings.broker_patience
    options = {"bootstrap_servers": settings.bootstrap, **aiokafka_options(settings.security)}
    ask = _ask_for_topics if settings.broker == "embedded" else _ask_for_groups
    while True:
        admin = AIOKafkaAdminClient(**options)
        try:
            await admin.start()
            return await ask(admin, settings)
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


async def _ask_for_topics(admin: Any, settings: Settings) -> None:
    """An embedded broker makes topics when they are asked for by name, and has them from the next time on."""
    wanted = [*map(settings.topic, topics.ALL), settings.changelog("question"), settings.changelog("feed")]
    await admin.describe_topics(wanted)
    missing = [topic["topic"] for topic in await admin.describe_topics(wanted) if topic["error_code"]]
    if missing:
        msg = f"the embedded broker at {settings.bootstrap} does not make {', '.join(missing)}"
        raise TopicsError(msg)


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
