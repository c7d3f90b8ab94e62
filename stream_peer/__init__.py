"""Expert weights from peer prediction, long before the outcomes are known."""

__version__ = "0.1.0"
