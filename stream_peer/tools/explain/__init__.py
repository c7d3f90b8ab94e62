"""Why a weight moved, and the life of a question: each a timeline of steps, taken from one fold of the log.

A `ReplayProbe` is called before and after each record, reads what the step needs, and keeps it:

- ``causes``: `explain` gives the causes that moved weights, from the readings before and after a record
- ``weight_timeline``: the steps of an expert's weight; ``weight``: from a log that was kept, or from Kafka, summed up
  by cause and by question
- ``question_timeline``: the steps of a question's life; ``question_events``, ``question_life``: these in words
- ``words``: how causes, moments and numbers are worded
- ``text``: prints either
- ``served``: the process that explains for a worker's HTTP server
"""
