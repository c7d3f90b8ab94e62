"""Why an expert's weight moved: what ``stream-peer explain``, a worker's HTTP server and the report tell.

- ``request``: what can be asked, and the answer
- ``witness``, ``fold``, ``kafka_log``: keep accounts (``engine.weight_account``) while files are replayed, or from a
  feed-log that was kept, or that is in Kafka
- ``story``: makes an explanation of an account; ``records``: what it holds
- ``words``, ``sentences``: how it is said
"""
