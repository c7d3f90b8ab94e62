"""The report of a replay, and what has to be kept during it for that."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stream_peer.cli.options import write_text

if TYPE_CHECKING:
    from stream_peer.events.outputs import ShadowScores
    from stream_peer.log.stage import Output
    from stream_peer.tools.replay.replay import ReplayOptions, ReplayResult

EXPLAINED = 3
"""So many of a feed's leading experts have their weights explained."""


class ReplayReport:
    """Keeps the feed-log of a replay, and writes the report once it has ended. A context manager.

    Parameters
    ----------
    path : Path
    options : ReplayOptions
        Those of the replay.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed: at once, not after the replay.
    """

    def __init__(self, path: Path, options: "ReplayOptions") -> None:
        from stream_peer.serve.pages.parts import require_matplotlib
        from stream_peer.tools.explain.weight_log import ReplayedLog

        require_matplotlib()
        self._path = path
        self._secret = options.secret
        self._log = ReplayedLog(options.feed_log_partitions, options.method_of)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.__exit__(kind, error, trace)

    def writing(self, write: "Callable[[Output], None] | None") -> "Callable[[Output], None]":
        """A writer that keeps what the report needs, and writes what is to be written anyway."""
        if write is None:
            return self._log.write

        def both(output: "Output") -> None:
            self._log.write(output)
            write(output)

        return both

    def write(self, result: "ReplayResult", shadows: "Mapping[str, Sequence[ShadowScores]]") -> None:
        """Write the report; ``shadows`` are those folded beside the replay, by feed."""
        from stream_peer.tools.report.cards.parts import FeedExtras
        from stream_peer.tools.report.plots import leaders
        from stream_peer.tools.report.report import render_report

        extras = {}
        for name, feed in result.history.feeds.items():
            leading = leaders(feed.weights)[:EXPLAINED] if feed.weights else []
            explanations = self._log.explanations(name, leading, result.settings, self._secret) if leading else ()
            extras[name] = FeedExtras(result.variant(name), explanations, shadows.get(name, ()))
        write_text(self._path, render_report(result.history, settings=result.settings, extras=extras))
