"""Settings of a process: frozen blocks, each setting with its bounds and a sentence about it."""

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec


class Secret:
    """A text that shows itself as ``***`` wherever it is printed, logged or encoded.

    Examples
    --------
    >>> Secret("hunter2"), f"{Secret('hunter2')}", Secret("hunter2").reveal()
    (***, '***', 'hunter2')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.reveal() == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


ENVIRONMENT_PREFIX = "STREAM_PEER_"

DURATION_SCHEMA: dict[str, Any] = {"examples": ["45s", "500ms", 20]}
SIZE_SCHEMA: dict[str, Any] = {"examples": ["64MB", 64000000]}
_NAME = r"^[A-Za-z0-9._-]{0,100}$"


def _about(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


Seconds = Annotated[
    float, msgspec.Meta(gt=0, le=86_400, extra={"reads": "duration"}, extra_json_schema=DURATION_SCHEMA)
]
GatherSeconds = Annotated[
    float, msgspec.Meta(ge=0, le=0.05, extra={"reads": "duration"}, extra_json_schema=DURATION_SCHEMA)
]
Size = Annotated[int, msgspec.Meta(ge=100_000, extra={"reads": "size"}, extra_json_schema=SIZE_SCHEMA)]
Name = Annotated[str, msgspec.Meta(pattern=_NAME)]
Count = Annotated[int, msgspec.Meta(ge=1)]
PartitionCount = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
ExistingFile = Annotated[Path, msgspec.Meta(extra={"reads": "path"})]
Address = Annotated[str, msgspec.Meta(extra={"reads": "url"}, extra_json_schema={"format": "uri"})]


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """How every client talks to the brokers: one block, used by consumers, producers and admin commands alike."""

    protocol: Annotated[
        Literal["plaintext", "ssl", "sasl_ssl", "sasl_plaintext"], _about("ssl with cert_file is mTLS")
    ] = "plaintext"
    mechanism: Annotated[
        Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"], _about("how a sasl_* protocol logs in")
    ] = "SCRAM-SHA-512"
    username: Annotated[str | None, _about("user of PLAIN and SCRAM")] = None
    password: Annotated[Secret | None, _about("password of PLAIN and SCRAM; by environment or file only")] = None
    ca_file: Annotated[ExistingFile | None, _about("PEM of the authorities trusted; default: the system's")] = None
    cert_file: Annotated[ExistingFile | None, _about("PEM of the client certificate and its chain")] = None
    key_file: Annotated[ExistingFile | None, _about("PEM of the client key, unless cert_file holds it too")] = None
    token_file: Annotated[ExistingFile | None, _about("file with the OAUTHBEARER token, read at each login")] = None
    allow_plaintext_password: Annotated[bool, _about("permit sasl_plaintext, readable on the wire")] = False


class SnapshotEvery(msgspec.Struct, frozen=True, kw_only=True):
    """State is written after whichever comes first."""

    seconds: Annotated[Seconds, _about("time since the last snapshot")] = 2.0
    records: Annotated[Count, _about("records since the last snapshot")] = 20_000
    bytes: Annotated[Size, _about("input since the last snapshot")] = 64_000_000


class Http(msgspec.Struct, frozen=True, kw_only=True):
    """Where metrics, health and feeds are served, and to whom."""

    host: Annotated[str, _about("address to bind; 0.0.0.0 for all")] = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535), _about("0: any free one")] = 8080
    advertise: Annotated[Address | None, _about("URL by which others reach this worker; default: host and port")] = None
    hosts: Annotated[
        str,
        _about(
            "names that requests may ask for besides addresses, localhost and advertise, separated by commas; *: any"
        ),
    ] = ""
    token_file: Annotated[
        ExistingFile | None,
        _about("bearer tokens, one a line, needed by all paths but /healthz; read again when it changes"),
    ] = None


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """Who may post events to ``stream-peer gateway``, and how many. It listens at ``http.host`` and ``http.port``."""

    tokens_file: Annotated[
        ExistingFile | None, _about("a producer and one of its bearer tokens a line; read again when it changes")
    ] = None
    cert_file: Annotated[ExistingFile | None, _about("PEM of its certificate and chain: with it, it speaks TLS")] = None
    key_file: Annotated[ExistingFile | None, _about("PEM of its key, unless cert_file holds it too")] = None
    client_ca_file: Annotated[
        ExistingFile | None,
        _about("PEM of the authorities of client certificates, whose common name is that of a producer"),
    ] = None
    events_per_second: Annotated[Count, _about("of each producer, on average; 429 above")] = 5_000
    bytes_per_second: Annotated[Size, _about("of each producer, on average; 429 above")] = 5_000_000


class Registry(msgspec.Struct, frozen=True, kw_only=True):
    """The schema registry that ``stream-peer topics schemas`` registers at."""

    url: Annotated[Address | None, _about("of a schema registry that speaks Confluent's API")] = None
    username: Annotated[str | None, _about("user of the registry, by HTTP basic authentication")] = None
    password: Annotated[Secret | None, _about("password of it; by environment or file only")] = None
    ca_file: Annotated[ExistingFile | None, _about("PEM of the authorities trusted; default: the system's")] = None


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is logged, to stderr."""

    format: Annotated[Literal["auto", "json", "console"], _about("auto: console on a terminal, else json")] = "auto"
    level: Annotated[Literal["debug", "info", "warning", "error"], _about("lowest level that is logged")] = "info"


class Partitions(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of the topics; what is derived from them follows. They cannot change once there is state."""

    forecast_events: Annotated[PartitionCount, _about("also of the outputs keyed by question")] = 16
    control_events: Annotated[PartitionCount, _about("of control-events")] = 16
    feed_log: Annotated[PartitionCount, _about("also of the outputs keyed by feed")] = 16
    dead_letters: Annotated[PartitionCount, _about("of dead-letters")] = 4


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a process. ``document`` holds the feed settings (``defaults``, ``feeds``) of the file."""

    bootstrap: Annotated[str, msgspec.Meta(min_length=1), _about("host:port of brokers, separated by commas")] = (
        "127.0.0.1:9092"
    )
    prefix: Annotated[Name, _about("put before every topic and group, e.g. acme-")] = ""
    id: Annotated[str, msgspec.Meta(pattern=_NAME, min_length=1), _about("name of this deployment in group names")] = (
        "stream-peer"
    )
    stage: Annotated[Literal["all", "question", "feed"], _about("which stages a worker runs")] = "all"
    broker: Annotated[Literal["kafka", "embedded"], _about("embedded is for the demo and tests")] = "kafka"
    security: Security = Security()
    session: Annotated[Seconds, _about("a worker silent for so long loses its partitions")] = 45.0
    rebalance_timeout: Annotated[Seconds, _about("time that members have to rejoin")] = 60.0
    shutdown_deadline: Annotated[Seconds, _about("a stopping worker that takes longer ends at once")] = 20.0
    broker_patience: Annotated[
        Seconds,
        _about(
            "how long a worker waits for brokers before it ends, whatever it does; a command: 10s unless this is set"
        ),
    ] = 60.0
    snapshot_every: SnapshotEvery = SnapshotEvery()
    gather: Annotated[GatherSeconds, _about("wait between small fetches, at most 50ms: less CPU, more latency")] = 0.0
    http: Http = Http()
    gateway: Gateway = Gateway()
    registry: Registry = Registry()
    store: Annotated[Literal["memory"], _about("where a worker keeps its state; Kafka holds it durably")] = "memory"
    start: Annotated[Literal["earliest", "latest"], _about("where the first start reads forecast-events from")] = (
        "earliest"
    )
    on_recreated: Annotated[
        Literal["stop", "keep", "rebuild"], _about("what to do if a topic with state was deleted and recreated")
    ] = "stop"
    instance: Annotated[Name | None, _about("static member id, e.g. the pod's name")] = None
    secret_file: Annotated[
        ExistingFile | None, _about("seeds draws and tie-breaks; the same for all workers, kept as long as the topics")
    ] = None
    producers_file: Annotated[
        ExistingFile | None,
        _about("YAML that says which producers may speak for which experts; the same for all workers"),
    ] = None
    signing_key_file: Annotated[
        ExistingFile | None,
        _about("keys, one a line, for the service's own records on forecast-events: the first signs, all verify"),
    ] = None
    log: Log = Log()
    compression: Annotated[Literal["zstd", "none"], _about("of produced records")] = "zstd"
    cloudevents: Annotated[bool, _about("CloudEvents headers on outputs other than dead letters")] = False
    partitions: Partitions = Partitions()
    replication: Annotated[int, msgspec.Meta(ge=1, le=100), _about("replicas of topics that are created")] = 1
    document: dict[str, Any] = {}

    def topic(self, logical: str) -> str:
        """Physical name of a topic: the prefix and the logical name."""
        return self.prefix + logical

    def app_id(self, stage: Literal["question", "feed"]) -> str:
        """Name of a stage's app, which is its consumer group too."""
        return f"{self.prefix}{self.id}-{stage}"

    def changelog(self, stage: Literal["question", "feed"]) -> str:
        """Physical name of the topic that holds a stage's state."""
        return f"{self.app_id(stage)}-{stage}-state-changelog"

    def secrets(self) -> tuple[Secret, ...]:
        """Every secret given, to mask them in texts."""
        given = self.security.password, self.registry.password
        return tuple(secret for secret in given if secret is not None)


class Leaf(NamedTuple):
    """One setting: its dotted path, type, default, and what it says about itself."""

    path: str
    type: Any
    default: Any
    about: str

    @property
    def reads(self) -> str:
        """How its text is read beyond what the type says: "duration", "size", "path", "url", "secret" or ""."""
        if Secret in get_args(_bare(self.type)):
            return "secret"
        return next((str(meta.extra["reads"]) for meta in _metas(self.type) if meta.extra), "")

    @property
    def choices(self) -> tuple[str, ...]:
        """The words to choose from, if it is one of a few."""
        bare = _bare(self.type)
        return get_args(bare) if get_origin(bare) is Literal else ()

    @property
    def flag(self) -> str:
        """The flag that sets it."""
        return flag_of(self.path)

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENVIRONMENT_PREFIX + self.path.upper().replace(".", "__")


def flag_of(path: str) -> str:
    """The flag that sets the setting at a dotted path.

    Examples
    --------
    >>> flag_of("snapshot_every.records")
    '--snapshot-every-records'
    """
    return "--" + path.replace(".", "-").replace("_", "-")


def leaves() -> dict[str, Leaf]:
    """Every process setting by its dotted path, in the order of the documentation."""
    return {leaf.path: leaf for leaf in _leaves(Settings, "") if leaf.path != "document"}


def _leaves(struct: type[Any], before: str) -> Iterator[Leaf]:
    for field in msgspec.structs.fields(struct):
        path = f"{before}{field.name}"
        if is_block(field.type):
            yield from _leaves(field.type, f"{path}.")
        else:
            about = next((meta.description for meta in _metas(field.type) if meta.description), "")
            yield Leaf(path, field.type, field.default, about)


def is_block(kind: Any) -> bool:
    """Whether a field holds settings itself."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _metas(kind: Any) -> Iterator[msgspec.Meta]:
    if get_origin(kind) is Annotated:
        inner, *metas = get_args(kind)
        yield from (meta for meta in metas if isinstance(meta, msgspec.Meta))
        yield from _metas(inner)
    elif get_origin(kind) in (Union, types.UnionType):
        for part in get_args(kind):
            yield from _metas(part)
