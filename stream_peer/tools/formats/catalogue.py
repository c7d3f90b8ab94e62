"""The formats by name."""

from collections.abc import Mapping

from stream_peer.tools.formats.adapter import Adapter
from stream_peer.tools.formats.gjopen import GJOPEN
from stream_peer.tools.formats.hubverse import HUBVERSE
from stream_peer.tools.formats.kalshi import KALSHI
from stream_peer.tools.formats.llm_panel import LLM_PANEL
from stream_peer.tools.formats.manifold import MANIFOLD
from stream_peer.tools.formats.metaculus import METACULUS
from stream_peer.tools.formats.polymarket import POLYMARKET
from stream_peer.tools.formats.table import TABLE

FORMATS: Mapping[str, Adapter] = {
    "csv": TABLE,
    "parquet": TABLE,
    "metaculus": METACULUS,
    "manifold": MANIFOLD,
    "gjopen": GJOPEN,
    "hubverse": HUBVERSE,
    "polymarket": POLYMARKET,
    "kalshi": KALSHI,
    "llm-panel": LLM_PANEL,
}
