"""Metrics: what the worker tells (``Observer``) as counters and histograms, what it knows read at each scrape.

Labels come from bounded sets: topics, partitions, stages, reasons, the first feeds, the top experts; never a question.
Only the owner of a partition reports it: what it released ends with the release, so that a sum over workers is true.

- ``catalogue``: every metric with its labels and how to read it
- ``observer``: counters and histograms, the worker and its partitions at this moment, and the registry
- ``feeds``: series of feeds, a bounded number of them
- ``senders``: who sends what, and what was not used, for the status page and ``/senders``
"""

from stream_peer.serve.metrics.observer import Metrics

__all__ = ["Metrics"]
