"""Kafka: the worker on Faust, and the client that everything else uses."""
