"""Reads the weights that stream_peer publishes on Kafka, and mixes forecasts with them.

``WeightsReader`` follows the topic ``weights`` in a thread, ``Weights`` are what it hands out. ``outputs`` has the
classes of all outputs: it is a copy of the service's own, made by ``make generated``.
"""

from stream_peer_client.connection import Security
from stream_peer_client.errors import (
    BrokersUnavailableError,
    ConnectionSettingsError,
    ForecastRangeError,
    NotAuthorisedError,
    NotReadError,
    NoWeightError,
    StreamPeerClientError,
    TopicMissingError,
    UnknownFeedError,
    UnknownSchemaError,
)
from stream_peer_client.reader import Change, WeightsReader
from stream_peer_client.weights import Mixed, Weights

__version__ = "0.1.0"

__all__ = [
    "BrokersUnavailableError",
    "Change",
    "ConnectionSettingsError",
    "ForecastRangeError",
    "Mixed",
    "NoWeightError",
    "NotAuthorisedError",
    "NotReadError",
    "Security",
    "StreamPeerClientError",
    "TopicMissingError",
    "UnknownFeedError",
    "UnknownSchemaError",
    "Weights",
    "WeightsReader",
]
