"""Deployment on Kubernetes: ``stream-peer`` is the chart, ``dashboards`` the code that makes the chart's dashboards."""
