"""The stages over files or over a feed-log, without a worker."""
