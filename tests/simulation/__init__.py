"""A whole deployment in one process, on simulated time, from one seed: brokers, workers, and what breaks."""
