"""The demo: a real feed small enough to ship, and the table that shows the service at work on it."""
