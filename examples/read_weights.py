"""Mix forecasts by the newest weights of a feed: read_weights.py BOOTSTRAP FEED EXPERT=PROBABILITY ..."""

import json
import os
import sys

from kafka import KafkaConsumer, TopicPartition  # pip install kafka-python zstandard


def newest_values(bootstrap, topic):
    """Return the last value of each key of a compacted topic, from its start to the end that it has now."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    values = {}
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for records in consumer.poll(timeout_ms=500).values():
            values.update((record.key, record.value) for record in records)
    consumer.close()
    return [value for value in values.values() if value is not None]  # without a value: the feed was deleted


def newest_parts(values, feed):
    """Return the records of the feed's highest revision: one, or all parts of a record of thousands of experts."""
    records = [record for record in map(json.loads, values) if record["feed"] == feed]
    revision = max((record["revision"] for record in records), default=None)
    parts = [record for record in records if record["revision"] == revision]
    if not parts:
        sys.exit(f"no weights of {feed}")
    if len(parts) < parts[0].get("parts", 1):
        sys.exit("a newer record is being written: try again")
    return parts


def main(bootstrap, feed, *given):
    """Read the weights, then print the mixed forecast, plain and stretched."""
    parts = newest_parts(newest_values(bootstrap, os.environ.get("STREAM_PEER_PREFIX", "") + "weights"), feed)
    weight = {expert["id"]: expert["mix"] for part in parts for expert in part["experts"]}
    forecasts = [(expert, float(probability)) for expert, _, probability in (text.rpartition("=") for text in given)]

    # The weights of the experts that are present are scaled to sum to 1; an expert that is not listed has weight 0.
    present = sum(weight.get(expert, 0.0) for expert, _ in forecasts)
    if present == 0.0:
        sys.exit(f"none of these experts has a weight in {feed}")
    mixed = sum(weight.get(expert, 0.0) * probability for expert, probability in forecasts) / present
    stretched = 0.5 + (1.0 + parts[0]["stretch"]) * (mixed - 0.5)  # what the outcomes so far say: bolder, or less bold
    stretched = min(1.0, max(0.0, stretched))
    status, revision = parts[0]["status"], parts[0]["revision"]
    print(f"mixed {mixed:.4f}, stretched {stretched:.4f} (status {status}, revision {revision})")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
