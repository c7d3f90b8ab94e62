"""The Grafana dashboards as code: ``python -m helm.dashboards`` writes ``helm/stream-peer/dashboards/*.json``."""
