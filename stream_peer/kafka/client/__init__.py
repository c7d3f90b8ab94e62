"""Kafka without a consumer group: topics and rights, reading partitions, writing control events."""
