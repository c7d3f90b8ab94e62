"""Every exception of the client, each with what to do about it."""


class StreamPeerClientError(Exception):
    """Base of all errors."""


class ConnectionSettingsError(StreamPeerClientError, ValueError):
    """A setting of the connection cannot be used. The message names it."""


class BrokersUnavailableError(StreamPeerClientError):
    """No broker answers. The reader goes on trying; look at addresses and network if it lasts."""


class NotAuthorisedError(StreamPeerClientError):
    """The brokers refuse the login, or the right to read the topic."""


class TopicMissingError(StreamPeerClientError):
    """There is no such topic, or we may not see it. Look at the prefix."""


class UnknownSchemaError(StreamPeerClientError):
    """The service writes a later major version of ``weights``. Upgrade the client."""


class NotReadError(StreamPeerClientError):
    """The reader has not yet read what the topic held when it began. Wait, or ask again."""


class UnknownFeedError(StreamPeerClientError, LookupError):
    """No weights of the feed were published, or the feed was deleted."""


class NoWeightError(StreamPeerClientError, LookupError):
    """None of the experts has a weight."""


class ForecastRangeError(StreamPeerClientError, ValueError):
    """A forecast is no probability. The message names expert and value."""
