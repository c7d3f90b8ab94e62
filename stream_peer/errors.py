"""Every exception of stream_peer, each with what an operator should do about it.

``exit_code`` is what the command line returns when the exception ends a command:
2 usage, files or a refused transfer, 65 nothing usable, 69 broker or registry unavailable or workers not ready,
70 internal, 77 not authorised, 78 bad settings, topics or state.
"""

from typing import ClassVar, NamedTuple


class StreamPeerError(Exception):
    """Base of all errors. Report it: a subclass should have been raised."""

    exit_code: ClassVar[int] = 70


class FormulaInputError(StreamPeerError, ValueError):
    """An argument of a formula is outside its documented range. The message holds its name and the value."""


class ForecastRangeError(FormulaInputError):
    """A forecast is NaN or outside [0, 1]. Check what the caller passes: events are checked at the door."""


class RejectedEvent(StreamPeerError):  # noqa: N818 - the field's word; it is routed to dead letters
    """An event that cannot be used. It goes to ``dead-letters`` untouched, with ``reason``; fix the producer.

    Attributes
    ----------
    reason : str
        One of ``stream_peer.events.rejections.Reason``.
    field : str
        Path of the field at fault, empty if the whole message is.
    message : str
        What is wrong, with the offending value.
    """

    def __init__(self, reason: str, *, message: str, field: str = "") -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.field = field
        self.message = message


class SettingFault(NamedTuple):
    """One thing wrong with the settings: where it is, where it came from, and what is wrong."""

    path: str
    origin: str
    message: str


class SettingsError(StreamPeerError):
    """The settings are wrong. Correct all listed faults: they are reported together, each with path and origin."""

    exit_code = 78

    def __init__(self, faults: list[SettingFault]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{f.path} ({f.origin}): {f.message}" for f in faults))


class UnservedMethodError(StreamPeerError):
    """The settings in force name a version of the method that this release does not serve. Run one that serves it."""

    exit_code = 78

    def __init__(self, version: int, served: tuple[int, ...]) -> None:
        super().__init__(
            f"the feed settings name version {version} of the method (method_version), and this release serves "
            f"{' and '.join(map(str, served))}: run a release that serves it"
        )
        self.version = version


class TopicsError(StreamPeerError):
    """Topics are missing or shaped wrongly. Run the command that the message names, then start again."""

    exit_code = 78


class SharedInstanceError(StreamPeerError):
    """Two workers have the same `instance`; brokers keep the newer one. Give each worker an `instance` of its own."""

    exit_code = 78


class LeaseEndedError(StreamPeerError):
    """Records were not sent: other workers own the partitions by now. This worker gives them up and joins again."""


class BrokerUnavailableError(StreamPeerError):
    """No broker answered within ``broker_patience``. Check ``bootstrap``, the network and the brokers."""

    exit_code = 69


class YoungClusterError(BrokerUnavailableError):
    """Brokers answer, and have no coordinator for our groups yet: a new cluster makes its topic for offsets first."""


class NotAuthorisedError(StreamPeerError):
    """The broker, or the schema registry, refuses these credentials or rights.

    Check the security block and the ACLs of ``topics plan``, or the registry block.
    """

    exit_code = 77


class RegistryUnavailableError(StreamPeerError):
    """No schema registry answered as one does. Check ``registry.url``, the network and the registry."""

    exit_code = 69


class SchemaRefusedError(StreamPeerError):
    """The schema registry refuses schemas. Check the compatibility level of the subjects that the message names."""

    exit_code = 78


class MissingExtraError(StreamPeerError):
    """An optional part of the package is not installed. Run the command that the message names."""

    exit_code = 78


class RecordTooLargeError(StreamPeerError):
    """A record exceeds what the broker takes. Raise ``max.message.bytes`` of the topic that the message names."""


class StateError(StreamPeerError):
    """Stored state cannot be read or contradicts itself. Restart; if it comes back, report it with the log."""


class ForeignWriterError(StateError):
    """Another process wrote to a changelog partition that this worker owns. The restart that follows repairs it."""


class ForeignSecretError(StateError):
    """State was made with another secret. Give every worker of a release the same ``secret_file``, and keep it."""

    exit_code = 78

    def __init__(self, *, expected: str, given: str) -> None:
        super().__init__(
            f"the stored state was made with a secret of fingerprint {expected}, this worker's is of {given}: "
            "secret_file must be the same for all workers of a release, as long as its topics"
        )


class UnsignedStateError(StateError):
    """State is from before signatures, when any header was believed. ``stream-peer repair`` is the way back."""

    exit_code = 78

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(
            f"the state of {topic}-{partition} is from before the service signed its records, when anybody's headers "
            f"were believed: `stream-peer repair {partition}` lets it go on, `stream-peer repair --all` every partition"
        )


class UnreadableStateError(StateError):
    """Stored state is in no form that this release knows. A restart does not help: see the docs on upgrades."""

    exit_code = 78


class NewerStateError(UnreadableStateError):
    """State was written by a later release. Run that release; `Upgrade and rollback` in the docs tells the way back."""

    def __init__(self, *, what: str, schema: int, readable: int) -> None:
        super().__init__(
            f"the state in {what} has schema {schema}, written by a later release; this one reads up to {readable}: "
            "run the later release again, or see `Upgrade and rollback` in the docs for the way back"
        )


class RecreatedTopicError(StreamPeerError):
    """A topic was deleted and recreated under a state that was folded from the old one. Choose ``on_recreated``."""

    exit_code = 78


class UnreadableFileError(StreamPeerError):
    """A file to read is missing, damaged, or may not be read. Check the path that the message names."""

    exit_code = 2


class NothingUsableError(StreamPeerError):
    """No line of the files can be used: they hold something else than events."""

    exit_code = 65


class UnwritableFileError(StreamPeerError):
    """A file could not be written to its end: the disk is full, most likely. What was written of it is incomplete."""

    exit_code = 2


class FeedTransferError(StreamPeerError):
    """A feed cannot be exported, or a file holds none that could be imported. Read what the message says is wrong."""

    exit_code = 2


class NotCaughtUpError(StreamPeerError):
    """Workers have not read what they are to have read. Start one, or wait for it; then try again."""

    exit_code = 69


class EarlierWorkersError(StreamPeerError):
    """Workers of a release that does not serve the stated method run. Replace them, or wait with ``--upgrade``."""

    exit_code = 69


def out_of_memory(error: BaseException | None) -> str:
    """What to say of an error that means too little memory: which limits this process has; empty for all others."""
    import errno
    import resource
    from pathlib import Path

    if not isinstance(error, MemoryError) and not (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return ""
    found = []
    for what, limit in (("ulimit -v", resource.RLIMIT_AS), ("ulimit -d", resource.RLIMIT_DATA)):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            found.append(f"{what}: {most / 1e6:,.0f} MB")
    of_group = Path("/sys/fs/cgroup/memory.max")
    if of_group.exists() and (most_of_group := of_group.read_text().strip()).isdigit():
        found.append(f"memory.max of the control group: {int(most_of_group) / 1e6:,.0f} MB")
    return f"memory ran out; limits of this process: {', '.join(found) or 'none, the machine has no more'}"
