"""The life of a question, as ``stream-peer replay --explain`` tells it.

- ``choice``: which question to tell of, if none was named
- ``explainer``: takes down what happens to it
- ``events``, ``effects``: what a line of a file said, and what was published because of it, in words
- ``story``: all of it, from the first line to the last
"""
