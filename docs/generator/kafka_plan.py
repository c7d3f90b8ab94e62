"""Topics and rights for the chart's Strimzi objects, from the plan that ``stream-peer topics plan`` prints."""

import re

import yaml

from stream_peer.kafka.client.topic_plan import AclEntry, WantedTopic, set_up_rights, wanted_topics, worker_rights
from stream_peer.settings.process import Partitions, Settings

FILE = "helm/stream-peer/files/kafka.yaml"
_HEAD = """\
# What the chart makes Strimzi's objects of: made by docs/generate.py from the plan of `stream-peer topics plan`.
# `partitions` names a value of `kafka.partitions`; {prefix} and {id} are kafka.prefix and kafka.applicationId.
"""
_COUNTS = {"forecast_events": 1, "control_events": 2, "feed_log": 3, "dead_letters": 4}
"""Numbers that stand for their settings: all differ."""


def files() -> dict[str, str]:
    """The file, by its path."""
    settings = Settings(prefix="{prefix}", id="{id}", partitions=Partitions(**_COUNTS))
    rights = _by_resource((*worker_rights(settings), *set_up_rights(settings)))
    plan = {
        "topics": [_topic(topic) for topic in wanted_topics(settings)],
        "acls": [
            {"type": entry.resource, "name": entry.name, "prefixed": entry.prefixed, "operations": operations}
            for entry, operations in rights.items()
        ],
    }
    return {FILE: _HEAD + yaml.safe_dump(plan, sort_keys=False, width=1000, default_flow_style=None)}


def _topic(topic: WantedTopic) -> dict[str, object]:
    (count,) = (name for name, number in _COUNTS.items() if number == topic.partitions)
    configs = {name: policy.value for name, policy in topic.policies.items()}
    return {"name": topic.name, "partitions": _camel(count), "config": configs}


def _camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found.group(1).upper(), name)


def _by_resource(entries: tuple[AclEntry, ...]) -> dict[AclEntry, list[str]]:
    """Operations by what they are on; that entry's own operation is the first of them."""
    found: dict[tuple[str, str, bool], tuple[AclEntry, dict[str, None]]] = {}
    for entry in entries:
        _, operations = found.setdefault((entry.resource, entry.name, entry.prefixed), (entry, {}))
        operations[entry.operation] = None
    return {entry: list(operations) for entry, operations in found.values()}
