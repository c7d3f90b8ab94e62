"""Topics and rights on the brokers: what there is, what is missing, making topics, and their ids."""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka
from kafka.admin import ACLOperation, ConfigResource, ConfigResourceType, OffsetSpec
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import MetadataRequest

from stream_peer.errors import BrokerUnavailableError, NotAuthorisedError, TopicsError, YoungClusterError
from stream_peer.events import topics
from stream_peer.kafka.client.preflight import preflight
from stream_peer.kafka.client.security import client_options
from stream_peer.kafka.client.topic_plan import (
    AclEntry,
    ActualTopic,
    Finding,
    Granted,
    Ids,
    Resource,
    WantedTopic,
    agree,
    compare,
    creation_configs,
    deleted,
    in_words,
    missing_rights,
    wanted_topics,
)
from stream_peer.kafka.client.waiting import say_waiting
from stream_peer.settings.process import Settings

_MADE_WITHIN_MILLISECONDS = 60_000  # however long somebody waits for a broker: it has answered by then
_REQUEST_MILLISECONDS = 30_000
_ATTEMPT_MILLISECONDS = 10_000  # of a question: the next attempt looks for other brokers
_PAUSE_SECONDS = 0.5
_NO_ID = uuid.UUID(int=0)
_IDS_VERSION = 10  # of the request for metadata: the first that tells ids of topics
_OPERATIONS = {operation.value for operation in ACLOperation} - {0, 1, 2}  # unknown, any, all: no single right
_UNKNOWN_TOPIC = 3
_NOT_AUTHORISED = 29
_SETTLED = ("Stable", "Empty", "Dead")  # states of a group in which brokers know what its members subscribed to

T = TypeVar("T")


class Plan(NamedTuple):
    """The topics wanted, what is not as wanted, what our user may do with the topics, and what there is."""

    wanted: tuple[WantedTopic, ...]
    findings: list[Finding]
    granted: Granted
    actual: Mapping[str, ActualTopic] = {}


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
    young : callable or None
        The same for a new cluster that has no coordinator yet; ``waiting`` if left out.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        command: str = "stream-peer topics apply",
        waiting: Callable[[str], None] | None = None,
        young: Callable[[str], None] | None = None,
    ) -> None:
        self._settings = settings
        self._command = command
        self._waiting = waiting
        self._young = young or waiting

    def plan(self) -> Plan:
        """Compare what is wanted with what there is.

        Raises
        ------
        BrokerUnavailableError
            If no broker answers within ``broker_patience``.
        NotAuthorisedError
            If we may not log in.
        """
        return self._plan(self._until())

    def _plan(self, until: float) -> Plan:
        wanted = wanted_topics(self._settings)
        preflight(self._settings, waiting=self._waiting)
        if self._settings.broker == "embedded":
            with self._client() as client:
                return Plan(wanted, _missing(wanted, _topics_of_embedded_broker(client, wanted)), {})
        actual, granted = self._patiently(lambda client: _describe(client, wanted), until)
        return Plan(wanted, compare(wanted, actual), granted, actual)

    def apply(self) -> list[Finding]:
        """Make what is missing and set what differs; return what was done.

        Raises
        ------
        TopicsError
            If partition counts differ: they are never changed, since state is kept per partition. Whatever else
            could be done has been done.
        NotAuthorisedError
            If we may not do it, or topics are hidden from us; nothing was done then.
        """
        plan = self.plan()
        missing = missing_rights(_needed_to_mend(plan), plan.granted)
        if missing or any(finding.kind == "hidden" for finding in plan.findings):
            self._refuse(plan.findings, missing)
        by_name = {topic.name: topic for topic in plan.wanted}
        fixable = [finding for finding in plan.findings if finding.kind != "partitions"]
        if fixable and self._settings.broker != "embedded":
            with self._client() as client:
                self._create(client, [by_name[f.topic] for f in fixable if f.kind == "missing"])
                _configure(client, [by_name[name] for name in {f.topic: None for f in fixable if f.kind == "config"}])
            self._await_mended(plan.wanted)
        self._refuse([finding for finding in plan.findings if finding.kind == "partitions"])
        return fixable

    def check(self, needed: Sequence[AclEntry] = (), former: Mapping[str, str] | None = None) -> dict[str, str]:
        """Refuse topics that are not as wanted, and needed rights that are missing: all at once.

        A topic of which no right is needed may be hidden from us. Then wait until every partition has a leader: too few
        brokers of a cluster may be up.

        Parameters
        ----------
        needed : sequence of AclEntry
            What our user must be allowed to do.
        former : mapping, optional
            The ids that topics had when workers began to fold them: one with another id was deleted meanwhile. An
            output is not folded, and may be deleted.

        Returns
        -------
        dict
            The ids of topics by name, as far as brokers give topics ids (from 2.8 on).

        Raises
        ------
        TopicsError
            Lists the topics, with both counts where partitions differ, and the command to run.
        NotAuthorisedError
            If rights are missing as well, or alone: without them topics cannot be mended, or even be seen.
        """
        settings, until = self._settings, self._until()
        plan = self._plan(until)
        both = (settings.app_id("question"), settings.app_id("feed"))
        groups = [group for group in both if _concerns("group", group, needed)]
        asked = bool(groups) and settings.broker != "embedded"
        granted = {**plan.granted, **(self._rights_on_groups(groups, until) if asked else {})}
        hidden = {topic.name for topic in plan.wanted if needed and not _concerns("topic", topic.name, needed)}
        findings = [found for found in plan.findings if found.kind != "hidden" or found.topic not in hidden]
        findings += deleted(self._folded(plan.wanted), plan.actual, former or {})
        self._refuse(findings, missing_rights(needed, granted))
        if settings.broker != "embedded":
            seen = [topic for topic in plan.wanted if topic.name not in hidden]
            self._ends([TopicPartition(topic.name, n) for topic in seen for n in range(topic.partitions)], until)
        return {name: topic.topic_id for name, topic in plan.actual.items() if topic.topic_id}

    def _folded(self, wanted: Iterable[WantedTopic]) -> Iterator[WantedTopic]:
        """The topics that a worker's state follows from."""
        outputs = {self._settings.topic(logical) for logical in topics.OUTPUTS}
        return (topic for topic in wanted if topic.name not in outputs)

    def remove_topics(self, names: list[str]) -> None:
        """Delete topics; one that is not there is no error.

        Raises
        ------
        BrokerUnavailableError, NotAuthorisedError
            If the brokers do not do it.
        """
        with self._client() as client:
            client.delete_topics(names, raise_errors=False)

    def ids(self, names: Iterable[str]) -> Ids:
        """The ids of the cluster and of topics; empty from a broker that knows no ids of topics (before 2.8).

        Raises
        ------
        BrokerUnavailableError, NotAuthorisedError
            If no broker tells them.
        """
        # An embedded broker answers this version, though it does not say so.
        version = {"version": _IDS_VERSION} if self._settings.broker == "embedded" else {"min_version": _IDS_VERSION}
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]

        def ask(client: Any) -> Any:
            return _sent(client, MetadataRequest(topics=asked, allow_auto_topic_creation=False, **version))

        try:
            found = self._patiently(ask, self._until())
        except kafka.IncompatibleBrokerVersion:
            return Ids("", {})
        known = [topic for topic in found.topics if not topic.error_code and topic.topic_id != _NO_ID]
        return Ids(found.cluster_id or "", {topic.name: str(topic.topic_id) for topic in known})

    def high_watermarks(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where logs end, whether committed or not: a consumer, which reads committed records, sees less.

        Raises
        ------
        BrokerUnavailableError, NotAuthorisedError
            If no broker tells it.
        """
        return self._ends(places, self._until())

    def members(self, groups: Iterable[str]) -> list[bytes] | None:
        """The subscriptions of the members of groups; None while one of the groups is being settled.

        Raises
        ------
        BrokerUnavailableError, NotAuthorisedError
            If the brokers do not tell them.
        """
        found = self._patiently(lambda client: [_described(client, group) for group in groups], self._until())
        if any(group.group_state not in _SETTLED for group in found):
            return None
        return [member.member_metadata for group in found for member in group.members]

    def _ends(self, places: Iterable[TopicPartition], until: float) -> Mapping[TopicPartition, int]:
        asked = dict.fromkeys(places, OffsetSpec.LATEST)
        ends = self._patiently(lambda client: client.list_partition_offsets(asked), until)
        return {place: end.offset for place, end in ends.items()}

    def _rights_on_groups(self, groups: list[str], until: float) -> Granted:
        """The operations that are granted on each group; a group of which the brokers do not say it is left out.

        Without the right to its group, a consumer waits for ever in silence. A young cluster has no coordinator yet: it
        is waited for.
        """
        held = self._patiently(lambda client: {group: _held(client, group) for group in groups}, until)
        return {("group", group): operations for group, operations in held.items() if operations is not None}

    def _until(self) -> float:
        """When the patience of a question that begins now is over."""
        return time.monotonic() + self._settings.broker_patience

    def _patiently(self, ask: Callable[[Any], T], until: float) -> T:
        """What brokers answer. A cluster of which only some answer is waited for as one of which none does."""
        told = set[bool]()
        while True:
            try:
                with self._client(_ATTEMPT_MILLISECONDS) as client:
                    return ask(client)
            except BrokerUnavailableError as error:
                if time.monotonic() + _PAUSE_SECONDS >= until:
                    msg = f"Brokers were awaited for {self._settings.broker_patience:g} s: {error}"
                    raise BrokerUnavailableError(msg) from None
                is_young = isinstance(error, YoungClusterError)
                if is_young not in told:
                    told.add(is_young)
                    listener = self._young if is_young else self._waiting
                    (listener or partial(say_waiting, self._settings))(str(error))
            time.sleep(_PAUSE_SECONDS)

    def _await_mended(self, wanted: tuple[WantedTopic, ...]) -> None:
        """Wait until the brokers answer with the new settings: each learns of them a moment after they are stored."""

        def ask(client: Any) -> None:
            findings = compare(wanted, _describe(client, wanted)[0])
            if late := [finding for finding in findings if finding.kind in ("missing", "config")]:
                msg = f"the brokers do not use the new settings yet: {'; '.join(in_words(late))}"
                raise BrokerUnavailableError(msg)

        self._patiently(ask, self._until())

    def _refuse(self, findings: list[Finding], missing: Collection[str] = ()) -> None:
        topics = self._said_of_topics(findings)
        if missing or any(finding.kind == "hidden" for finding in findings):
            raise NotAuthorisedError("\n".join([*self._said_of_rights(missing), *topics]))
        if topics:
            raise TopicsError("\n".join(topics))

    def _said_of_rights(self, missing: Collection[str]) -> list[str]:
        user = self._settings.security.username
        first = f"Rights are missing at {self._settings.bootstrap}" + (f" for the user {user}" if user else "")
        return [
            f"{first}; `stream-peer topics plan --offline` prints the commands that grant them:",
            *map(_line, missing),
        ]

    def _said_of_topics(self, findings: list[Finding]) -> list[str]:
        gone = [finding for finding in findings if finding.kind == "deleted"]
        return [*self._said_of_shapes([each for each in findings if each not in gone]), *_said_of_deleted(gone)]

    def _said_of_shapes(self, findings: list[Finding]) -> list[str]:
        if not findings:
            return []
        named = in_words(findings)
        if all(finding.kind == "partitions" for finding in findings):
            return [f"{'; '.join(named)}: partitions cannot change once there is state; {self._way_back(findings)}."]
        first = (
            f"The topics at {self._settings.bootstrap} are not as this deployment needs them: run `{self._command}`."
        )
        return [first, *map(_line, named)]

    def _way_back(self, findings: list[Finding]) -> str:
        """What helps: other settings where nothing is stored yet, else the same topics again, or other topics."""
        names, command = [finding.topic for finding in findings], self._command
        has_state = self._has_state()
        if not has_state and agree(wanted_topics(self._settings), findings):
            return f"set them to what there is, or start a deployment under another prefix (`{command} --prefix NEW-`)"
        if has_state and self._would_forget(names):
            return (
                f"stop the workers, start others under another prefix (`{command} --prefix NEW-`), and move each feed "
                "there with `stream-peer export` and `stream-peer import` (`More partitions` in docs/operations)"
            )
        return (
            f"stop the workers, delete {', '.join(names)}, run `{command}`, and start them with on_recreated: keep "
            "(`Changed topics` in docs/operations says what to send again, and how to get more partitions)"
        )

    def _has_state(self) -> bool:
        """Whether the changelogs hold anything; also if we may not see it."""
        names = [self._settings.changelog(stage) for stage in ("question", "feed")]
        try:
            found = self._patiently(lambda client: client.describe_topics(names), self._until())
            places = [TopicPartition(each["name"], p["partition_index"]) for each in found for p in each["partitions"]]
            return any(self.high_watermarks(places).values())
        except NotAuthorisedError:
            return True

    def _would_forget(self, names: Collection[str]) -> bool:
        """Whether a stage would lose its state and the log that it follows from, if these topics were deleted."""
        settings = self._settings
        pairs = (
            {settings.changelog("question"), settings.topic(topics.FORECAST_EVENTS)},
            {settings.changelog("feed"), settings.topic(topics.FEED_LOG)},
        )
        return any(pair <= set(names) for pair in pairs)

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
        self._refuse_uncreated(answer["topics"])
        client.wait_for_topics(list(asked), timeout_ms=_MADE_WITHIN_MILLISECONDS)

    def _refuse_uncreated(self, topics: Iterable[Mapping[str, Any]]) -> None:
        """Name every topic that the brokers did not make, and why."""
        faults = {topic["name"]: (kafka.for_code(topic["error_code"]), topic.get("error_message")) for topic in topics}
        if refused := [name for name, (kind, _) in faults.items() if issubclass(kind, kafka.AuthorizationError)]:
            missing = [str(AclEntry("Create", "topic", name)) for name in refused]
            raise NotAuthorisedError("\n".join(self._said_of_rights(missing)))
        made = (kafka.NoError, kafka.TopicAlreadyExistsError)
        if unmade := [f"{n}: {text or _name(kind())}" for n, (kind, text) in faults.items() if kind not in made]:
            msg = f"The brokers do not make {'; '.join(unmade)}"
            raise TopicsError(msg)

    @contextmanager
    def _client(self, request_milliseconds: int = _REQUEST_MILLISECONDS) -> Iterator[Any]:
        """A connected admin client, whose errors are ours."""
        patience = round(self._settings.broker_patience * 1000)
        try:
            client = KafkaAdminClient(
                client_id=f"{self._settings.prefix}{self._settings.id}-admin",
                bootstrap_timeout_ms=patience,
                request_timeout_ms=request_milliseconds,
                **client_options(self._settings),
            )
            with client:
                yield client
        except kafka.AuthorizationError as error:
            msg = f"The brokers at {self._settings.bootstrap} refuse us: {_name(error)}; see `stream-peer topics plan`."
            raise NotAuthorisedError(msg) from None
        except (kafka.CoordinatorNotAvailableError, kafka.CoordinatorLoadInProgressError):
            msg = (
                f"The brokers at {self._settings.bootstrap} are making their topic for offsets, as a new cluster does."
            )
            raise YoungClusterError(msg) from None
        except (kafka.RetriableError, kafka.BrokerNotAvailableError) as error:
            raise BrokerUnavailableError(_unanswered(self._settings, error)) from None


def _concerns(resource: Resource, name: str, needed: Iterable[AclEntry]) -> bool:
    return any(entry.covers(resource, name) for entry in needed)


def _said_of_deleted(gone: list[Finding]) -> list[str]:
    """A topic of the same name is another log: only a start can decide what becomes of the state."""
    if not gone:
        return []
    return [
        f"{'; '.join(in_words(gone))} while workers run: when all topics are there, restart the workers with "
        "on_recreated: keep (`Recreated topics` in docs/operations says what is kept)."
    ]


def _needed_to_mend(plan: Plan) -> Iterator[AclEntry]:
    yield from (AclEntry("DescribeConfigs", "topic", topic.name) for topic in plan.wanted)
    for finding in plan.findings:
        if finding.kind in ("missing", "config"):
            yield AclEntry("Create" if finding.kind == "missing" else "AlterConfigs", "topic", finding.topic)


def _as_in_acls(operation: str) -> str:
    """``DESCRIBE_CONFIGS`` as kafka-acls.sh writes it."""
    return operation.title().replace("_", "")


def _line(text: str) -> str:
    return f"  {text}"


def _describe(client: Any, wanted: tuple[WantedTopic, ...]) -> tuple[dict[str, ActualTopic], Granted]:
    """The topics that are there or hidden, and what we may do with them."""
    described = {topic["name"]: topic for topic in client.describe_topics([topic.name for topic in wanted])}
    configs = _configs(client, [name for name, topic in described.items() if topic["error_code"] != _UNKNOWN_TOPIC])
    hidden = {name for name, topic in described.items() if topic["error_code"] == _NOT_AUTHORISED}
    actual = {
        name: ActualTopic(len(described[name]["partitions"]), found, name in hidden, _id(described[name]))
        for name, found in configs.items()
    }
    granted: dict[tuple[Resource, str], Collection[str]] = {}
    for name, topic in described.items():
        if name in hidden:  # the right to see the settings of a topic does not include the right to see the topic
            granted["topic", name] = {"DescribeConfigs"} if configs[name] else ()
        elif topic.get("authorized_operations") is not None:  # brokers before 2.3 do not say it
            granted["topic", name] = {_as_in_acls(operation) for operation in topic["authorized_operations"]}
    return actual, granted


def _id(described: Mapping[str, Any]) -> str:
    found = str(described.get("topic_id") or _NO_ID)
    return "" if found == str(_NO_ID) else found


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
    done = client.alter_configs(resources)["topic"]
    if unset := [f"{name}: {text}" for name, text in done.items() if text != "OK"]:
        msg = f"The brokers do not set the policies of {'; '.join(unset)}"
        raise TopicsError(msg)


def _missing(wanted: tuple[WantedTopic, ...], there: set[str]) -> list[Finding]:
    return [Finding(topic.name, "missing", "is missing") for topic in wanted if topic.name not in there]


def _topics_of_embedded_broker(client: Any, wanted: Iterable[WantedTopic]) -> set[str]:
    """Topics of a broker that makes them when they are asked for by name, and has them from the next time on."""
    names = [topic.name for topic in wanted]
    asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    _sent(client, MetadataRequest(topics=asked, allow_auto_topic_creation=True))
    return {topic["name"] for topic in client.describe_topics(names) if not topic["error_code"]}


def _held(client: Any, group: str) -> Collection[str] | None:
    """The operations that are granted on a group; None: the brokers do not say it (before 2.3)."""
    try:
        bits = _described(client, group).authorized_operations
    except kafka.GroupAuthorizationFailedError:
        return ()
    return None if bits is None else {_as_in_acls(ACLOperation(bit).name) for bit in bits if bit in _OPERATIONS}


def _described(client: Any, group: str) -> Any:
    """What the brokers know of a group; one that they do not know is dead, without members."""
    # Version 6 answers that there is no such group, and says nothing of rights to it.
    question = DescribeGroupsRequest(groups=[group], include_authorized_operations=True, max_version=5)
    (found,) = _sent(client, question, client._manager.run(client._find_coordinator_id, group)).groups  # noqa: SLF001
    if found.error_code:
        raise kafka.for_code(found.error_code)(group)
    return found


def _sent(client: Any, question: Any, node: int | None = None) -> Any:
    """The answer to a request for which kafka-python's admin client has no method that will do."""
    return client._manager.run(client._manager.send, question, node)  # noqa: SLF001 - nothing of it is public


def _unanswered(settings: Settings, error: Exception) -> str:
    return f"The brokers at {settings.bootstrap} do not answer any more ({_name(error)})."


def _name(error: Exception) -> str:
    return type(error).__name__.removesuffix("Error")
