"""A worker of a release before the method had versions: it tells its group none, and refuses settings that name one."""

from typing import Any

from faust.assignor.partition_assignor import PartitionAssignor

from stream_peer.cli import main
from stream_peer.errors import SettingFault
from stream_peer.kafka.worker.faust_bridge import Assignor
from stream_peer.settings.feed import document

_resolve = document._resolve


def resolved_without_the_word(path: str, layers: list[Any], origin: str, faults: list[SettingFault], **how: Any) -> Any:
    """As ``_resolve`` was."""
    if any("method_version" in layer for layer in layers):
        faults.append(SettingFault(f"{path}.method_version", origin, "no such setting"))
    return _resolve(path, layers, origin, faults, **how)


if __name__ == "__main__":
    Assignor.metadata = PartitionAssignor.metadata  # type: ignore[method-assign]  # as it was
    document._resolve = resolved_without_the_word
    main()
