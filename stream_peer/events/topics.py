"""The topics, by their logical names. A deployment's prefix is put in front by topology and adapters."""

FORECAST_EVENTS = "forecast-events"
CONTROL_EVENTS = "control-events"
FEED_LOG = "feed-log"
WEIGHTS = "weights"
ERROR_RATES = "error-rates"
REFERENCE_ANSWERS = "reference-answers"
PEER_LOSSES = "peer-losses"
MIXED_FORECASTS = "mixed-forecasts"
DEAD_LETTERS = "dead-letters"

INPUTS = (FORECAST_EVENTS, CONTROL_EVENTS)
KEYED_BY_FEED = (WEIGHTS, ERROR_RATES)
KEYED_BY_QUESTION = (REFERENCE_ANSWERS, PEER_LOSSES, MIXED_FORECASTS)
OUTPUTS = (*KEYED_BY_FEED, *KEYED_BY_QUESTION, DEAD_LETTERS)
ALL = (*INPUTS, FEED_LOG, *OUTPUTS)
