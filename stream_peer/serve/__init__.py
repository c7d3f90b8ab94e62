"""What a worker answers: HTTP, metrics, log lines and pages."""
