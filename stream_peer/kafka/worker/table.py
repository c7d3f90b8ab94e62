"""The table of a stage: Faust reads its changelog, a fold understands it, and the store stays empty."""

from typing import Any

import faust


class BatchSchema(faust.Schema):
    """Of topics whose messages are whole batches of raw records."""

    def loads_key(self, _app: Any, _message: Any, **_formats: Any) -> None:
        """No key: records have theirs."""

    def loads_value(self, _app: Any, message: Any, **_formats: Any) -> Any:
        """Return the batch as it is."""
        return message.value


class FoldTable(faust.Table):
    """Recovery only; snapshots write the changelog."""

    def apply_changelog_batch(self, batch: Any) -> None:
        """Read batches of changelog records. Faust would log an error here and go on with half a state: leave."""
        ownership = self.app.ownership
        try:
            for event in batch:
                tp = event.message.tp
                ownership.recover(tp.topic, tp.partition, event.message.value)
        except BaseException as error:  # noqa: BLE001 - see above
            ownership.fail(error)

    def persisted_offset(self, tp: Any) -> int:
        """The last changelog offset that the fold knows, -1 for none: recovery reads on from there."""
        return int(self.app.ownership.recovered_up_to(tp.topic, tp.partition))
