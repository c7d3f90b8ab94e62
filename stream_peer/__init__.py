"""Whom to listen to, long before the outcomes are known: expert weights from peer prediction."""

__version__ = "0.1.0"
