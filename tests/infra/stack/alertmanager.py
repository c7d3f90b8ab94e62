"""A real Alertmanager on a free port, which keeps what it is told and sends nothing to anybody."""

import json
from pathlib import Path
from typing import Any

from tests.infra.support.server import Server

PROGRAM = "prometheus-alertmanager"
_DEPLOYMENT = ["cluster", "namespace", "job"]

CONFIGURATION: dict[str, Any] = {
    "route": {
        "receiver": "operator",
        "group_by": ["alertname", *_DEPLOYMENT],
        "group_wait": "1s",
        "group_interval": "5s",
        "repeat_interval": "4h",
    },
    "receivers": [{"name": "operator"}],
    "inhibit_rules": [
        # Where nobody works, everything else follows from it.
        {
            "source_matchers": ['alertname="StreamPeerNoWorkers"'],
            "target_matchers": ['alertname=~"StreamPeer.+"', 'alertname!="StreamPeerNoWorkers"'],
            "equal": _DEPLOYMENT,
        },
        # What stands still falls behind, too.
        {
            "source_matchers": ['alertname="StreamPeerNoProgress"'],
            "target_matchers": ['alertname="StreamPeerLagGrows"'],
            "equal": [*_DEPLOYMENT, "topic", "partition"],
        },
    ],
}


class Alertmanager(Server):
    """Context manager: the server, with its configuration and data in a temporary directory."""

    def __init__(self) -> None:
        super().__init__(PROGRAM, CONFIGURATION)

    def names(self) -> set[str]:
        """Names of the alerts that it was told of and that go on."""
        status, text = self._http("/api/v2/alerts?active=true")
        assert status == 200, f"{status} {text}"
        return {alert["labels"]["alertname"] for alert in json.loads(text)}

    def _options(self, data: Path) -> list[str]:
        return [f"--storage.path={data}", "--cluster.listen-address="]
