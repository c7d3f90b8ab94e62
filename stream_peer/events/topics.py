"""The topics, by their logical names, and the size of their records. Topology and adapters put the prefix in front."""

FORECAST_EVENTS = "forecast-events"
CONTROL_EVENTS = "control-events"
FEED_LOG = "feed-log"
WEIGHTS = "weights"
ERROR_RATES = "error-rates"
REFERENCE_ANSWERS = "reference-answers"
PEER_LOSSES = "peer-losses"
MIXED_FORECASTS = "mixed-forecasts"
MIXED_GROUPS = "mixed-groups"
DEAD_LETTERS = "dead-letters"

INPUTS = (FORECAST_EVENTS, CONTROL_EVENTS)
KEYED_BY_FEED = (WEIGHTS, ERROR_RATES)
KEYED_BY_QUESTION = (REFERENCE_ANSWERS, PEER_LOSSES, MIXED_FORECASTS)
KEYED_BY_GROUP = (MIXED_GROUPS,)
OF_FEEDS = (*KEYED_BY_FEED, *KEYED_BY_QUESTION, *KEYED_BY_GROUP)
"""What the feed stage publishes."""
OUTPUTS = (*OF_FEEDS, DEAD_LETTERS)
ALL = (*INPUTS, FEED_LOG, *OUTPUTS)

EVENTS = ("question", "forecast", "group-forecast", "forecasts", "resolution", "group-resolution")
CONTROLS = ("expert", "feed", "feed-import", "settings")
NOTICES = ("tick", "signatures-from-here")
MESSAGES = {
    FORECAST_EVENTS: (*EVENTS, *NOTICES, *CONTROLS),
    CONTROL_EVENTS: CONTROLS,
    **{topic: (topic,) for topic in OF_FEEDS},
}
"""Names of the schemas of what stands on inputs and outputs; dead letters have the values that were refused."""

MAX_RECORD_BYTES = 900_000
"""Of a record or batch that the service writes: with key and headers it stays below a broker's usual limit, 1 MB."""
