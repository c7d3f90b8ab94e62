"""The version of the method that settings are applied with: this release's, once no worker of an earlier one runs.

Each worker tells its group the newest version that it serves, in what Faust sends when it joins; a worker of a release
before there were versions tells none. An earlier worker that met a later version in its log would end, or, if it does
not know the word, refuse the settings that all others follow.
"""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka.errors import KafkaError
from kafka.protocol.old.consumer_protocol import ConsumerProtocolMemberMetadata_v0

from stream_peer.errors import EarlierWorkersError, NotAuthorisedError
from stream_peer.kafka.client.admin import KafkaAdmin
from stream_peer.kafka.client.topic_plan import AclEntry
from stream_peer.settings.feed.document import stated_method, stated_methods, with_method
from stream_peer.settings.feed.model import NEWEST_METHOD, UNSTATED_METHOD
from stream_peer.settings.process import Settings

_SERVES = "method"
_SETTLING_SECONDS = 10.0  # of a group whose members come or go: longer than a rebalance that nobody hinders
_PAUSE_SECONDS = 0.5

Document = Mapping[str, Any]


class ToApply(NamedTuple):
    """The document to apply, and why its version of the method is not this release's; None if it is, or is stated."""

    document: dict[str, Any]
    why_not_newest: str | None = None


def with_served(user_data: bytes) -> bytes:
    """What a worker tells its group, with the newest version of the method that it serves."""
    return json.dumps({**json.loads(user_data), _SERVES: NEWEST_METHOD}).encode()


def newest_served(metadata: bytes) -> int:
    """The newest version of the method that a member of a group serves, of its subscription as the brokers keep it."""
    try:
        told = json.loads(ConsumerProtocolMemberMetadata_v0.decode(metadata).user_data)
        served = told.get(_SERVES, UNSTATED_METHOD)
    except (ValueError, TypeError, AttributeError, KafkaError):
        return UNSTATED_METHOD
    return served if isinstance(served, int) else UNSTATED_METHOD


def to_apply(settings: Settings, document: Document, in_force: Document | None, patience: float) -> ToApply:
    """The document as it is to be applied: with the newest version of the method that all workers serve.

    A version that the document states stays, of all feeds or of one; ``defaults`` that state none get the newest one
    that all workers serve. ``in_force`` is the document that was applied last. ``patience``: how many seconds to wait
    until workers of an earlier release have gone.

    Raises
    ------
    EarlierWorkersError
        If the document itself states a version that a worker does not serve.
    BrokerUnavailableError, NotAuthorisedError
        If the brokers do not say who runs.
    """
    before = max(stated_methods(in_force or {}), default=UNSTATED_METHOD)
    newest = with_method(document, NEWEST_METHOD)
    wanted = max(stated_methods(newest), default=before)
    why_not = None if wanted <= before else _why_not(settings, wanted, patience)
    if why_not is None:
        return ToApply(newest)
    if max(stated_methods(document), default=before) > before:
        msg = f"{why_not}: nothing was applied"
        raise EarlierWorkersError(msg)
    kept = dict(document) if before == UNSTATED_METHOD else with_method(document, before)
    return ToApply(kept, f"{why_not}: feeds stay at version {before}")


def as_applied(document: Document, in_force: Document) -> dict[str, Any]:
    """A document with the version of the method that is in force, unless it states its own."""
    version = stated_method(in_force)
    return dict(document) if version is None else with_method(document, version)


def _why_not(settings: Settings, version: int, patience: float) -> str | None:
    """Why a version of the method cannot come into force yet; None if all workers serve it, or none runs."""
    if settings.broker == "embedded":  # of a demo, whose only worker is of this release
        return None
    groups = [settings.app_id("question"), settings.app_id("feed")]
    begun = time.monotonic()
    while True:
        try:
            members = KafkaAdmin(settings).members(groups)
        except NotAuthorisedError:
            needed = AclEntry("Describe", "group", f"{settings.prefix}{settings.id}-", prefixed=True)
            return f"without the right {needed} nobody can tell whether an earlier worker runs"
        why_not = _said(members, version)
        waited = time.monotonic() - begun
        if why_not is None or waited >= (patience if members is not None else max(patience, _SETTLING_SECONDS)):
            return why_not
        time.sleep(_PAUSE_SECONDS)


def _said(members: Iterable[bytes] | None, version: int) -> str | None:
    if members is None:
        return "workers come or go, so it is not known which releases run"
    served = [newest_served(metadata) for metadata in members]
    earlier = sum(newest < version for newest in served)
    if not earlier:
        return None
    return f"{earlier} of {len(served)} members of the groups are of a release that does not serve version {version}"
