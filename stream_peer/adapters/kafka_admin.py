"""Topics on the brokers: what there is, what is missing, and making it so. Synchronous, over kafka-python."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka import KafkaAdminClient
from kafka import errors as kafka
from kafka.admin import ConfigResource, ConfigResourceType

from stream_peer.adapters.preflight import preflight
from stream_peer.adapters.topic_plan import ActualTopic, Finding, WantedTopic, compare, creation_configs, wanted_topics
from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, TopicsError
from stream_peer.security import aiokafka_options, kafka_python_options
from stream_peer.settings import Settings

_UNKNOWN_TOPIC = 3
_NOT_AUTHORISED = 29


class Plan(NamedTuple):
    """The topics wanted, and what is not as wanted."""

    wanted: tuple[WantedTopic, ...]
    findings: list[Finding]


class KafkaAdmin:
    """Plans, applies and checks the topics of one deployment.

    Parameters
    ----------
    settings : Settings
        Names the brokers, the topics and their partitions.
    command : str
        What to run to make missing topics, as messages name it.
    waiting : callable or None
        Told with the reason when there is no broker yet and we wait for one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        command: str = "stream-peer topics apply",
        waiting: Callable[[str], None] | None = None,
    ) -> None:
        self._settings = settings
        self._command = command
        self._waiting = waiting

    def plan(self) -> Plan:
        """Compare what is wanted with what there is.

        Raises
        ------
        BrokerUnavailableError
            If no broker answers within ``broker_patience``.
        NotAuthorisedError
            If we may not look.
        """
        wanted = wanted_topics(self._settings)
        preflight(self._settings, waiting=self._waiting)
        if self._settings.broker == "embedded":
            return Plan(wanted, _missing(wanted, asyncio.run(_topics_of_embedded_broker(self._settings))))
        with self._client() as client:
            return Plan(wanted, compare(wanted, _describe(client, wanted)))

    def apply(self) -> list[Finding]:
        """Make what is missing and set what differs; return what was done.

        Raises
        ------
        TopicsError
            If partition counts differ: they are never changed, since state is kept per partition. Whatever else
            could be done has been done.
        """
        plan = self.plan()
        by_name = {topic.name: topic for topic in plan.wanted}
        fixable = [finding for finding in plan.findings if finding.kind != "partitions"]
        if fixable and self._settings.broker != "embedded":
            with self._client() as client:
                self._create(client, [by_name[f.topic] for f in fixable if f.kind == "missing"])
                _configure(client, [by_name[name] for name in {f.topic: None for f in fixable if f.kind == "config"}])
        self._refuse([finding for finding in plan.findings if finding.kind == "partitions"])
        return fixable

    def check(self) -> None:
        """Refuse topics that are not as wanted.

        Raises
        ------
        TopicsError
            Lists them, with both counts where partitions differ, and the command to run.
        """
        self._refuse(self.plan().findings)

    def _refuse(self, findings: list[Finding]) -> None:
        if not findings:
            return
        named = [f"{finding.topic} {finding.message}" for finding in findings]
        if all(finding.kind == "partitions" for finding in findings):
            msg = (
                f"{'; '.join(named)}: partitions cannot change once there is state; set them to what there is, "
                f"or start a deployment under another prefix (`{self._command} --prefix NEW-`)."
            )
        else:
            listed = "\n  ".join([f"run `{self._command}`.", *named])
            msg = f"The topics at {self._settings.bootstrap} are not as this deployment needs them: {listed}"
        raise TopicsError(msg)

    def _create(self, client: Any, missing: list[WantedTopic]) -> None:
        if not missing:
            return
        replication = self._settings.replication
        asked = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication,
                "configs": creation_configs(topic, replication),
            }
            for topic in missing
        }
        try:
            answer = client.create_topics(asked, raise_errors=False)
        except kafka.KafkaTimeoutError as error:
            raise BrokerUnavailableError(_unanswered(self._settings, error)) from None
        for topic in answer["topics"]:
            _raise_if_refused(topic["name"], topic["error_code"], topic.get("error_message"))
        client.wait_for_topics(list(asked), timeout_ms=round(self._settings.broker_patience * 1000))

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """A connected admin client, whose errors are ours."""
        patience = round(self._settings.broker_patience * 1000)
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        try:
            client = KafkaAdminClient(
                bootstrap_servers=self._settings.bootstrap.split(","),
                client_id=f"{self._settings.prefix}{self._settings.id}-admin",
                bootstrap_timeout_ms=patience,
                **kafka_python_options(self._settings.security),
            )
            with client:
                yield client
        except kafka.AuthorizationError as error:
            msg = f"The brokers at {self._settings.bootstrap} refuse us: {_name(error)}; see `stream-peer topics plan`."
            raise NotAuthorisedError(msg) from None
        except (kafka.RetriableError, kafka.BrokerNotAvailableError) as error:
            raise BrokerUnavailableError(_unanswered(self._settings, error)) from None


def _describe(client: Any, wanted: tuple[WantedTopic, ...]) -> dict[str, ActualTopic]:
    described = {topic["name"]: topic for topic in client.describe_topics([topic.name for topic in wanted])}
    refused = sorted(name for name, topic in described.items() if topic["error_code"] == _NOT_AUTHORISED)
    if refused:
        others = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        msg = f"No right to describe {refused[0]}{others}; `stream-peer topics plan --offline` lists the rights needed."
        raise NotAuthorisedError(msg)
    there = {name: topic for name, topic in described.items() if topic["error_code"] != _UNKNOWN_TOPIC}
    configs = _configs(client, list(there))
    return {name: ActualTopic(len(topic["partitions"]), configs[name]) for name, topic in there.items()}


def _configs(client: Any, names: list[str]) -> dict[str, dict[str, str]]:
    """All settings of topics, defaults included; a topic that we may not look into has none."""
    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found = client.describe_configs(resources, config_filter="all").get("topic", {})
    return {name: {key: str(value["value"]) for key, value in found.get(name, {}).items()} for name in names}


def _configure(client: Any, differing: list[WantedTopic]) -> None:
    if not differing:
        return
    resources = [
        ConfigResource(
            ConfigResourceType.TOPIC,
            topic.name,
            {name: policy.value for name, policy in topic.policies.items() if policy.rule != "free"},
        )
        for topic in differing
    ]
    client.alter_configs(resources)


def _missing(wanted: tuple[WantedTopic, ...], there: set[str]) -> list[Finding]:
    return [Finding(topic.name, "missing", "is missing") for topic in wanted if topic.name not in there]


async def _topics_of_embedded_broker(settings: Settings) -> set[str]:
    """Topics of a broker that no admin client can talk to."""
    from aiokafka import AIOKafkaConsumer

    options = aiokafka_options(settings.security)
    async with AIOKafkaConsumer(bootstrap_servers=settings.bootstrap, **options) as consumer:
        return set(await consumer.topics())


def _raise_if_refused(topic: str, code: int, message: str | None) -> None:
    error = kafka.for_code(code)
    if error in (kafka.NoError, kafka.TopicAlreadyExistsError):
        return
    if issubclass(error, kafka.AuthorizationError):
        msg = f"No right to create {topic}; `stream-peer topics plan --offline` lists the rights needed."
        raise NotAuthorisedError(msg)
    msg = f"The broker does not make {topic}: {message or _name(error())}"
    raise TopicsError(msg)


def _unanswered(settings: Settings, error: Exception) -> str:
    return f"The brokers at {settings.bootstrap} do not answer any more ({_name(error)})."


def _name(error: Exception) -> str:
    return type(error).__name__.removesuffix("Error")
