"""HTTP in: events that platforms without a Kafka client post, checked, signed, and written to ``forecast-events``.

- ``posts``: the events of a post, each checked as the worker's door does, signed as its producer
- ``limits``: what a producer may send, and how much is in memory
- ``brokers``: writes events, waits for the acknowledgement, and knows whether brokers answer
- ``server``: routes, who may post, answers
"""
