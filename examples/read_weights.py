"""Mix forecasts by the newest weights of a feed: read_weights.py BOOTSTRAP FEED EXPERT=PROBABILITY ..."""

import json
import os
import sys

from kafka import KafkaConsumer  # pip install kafka-python zstandard

bootstrap, feed, *given = sys.argv[1:] if len(sys.argv) > 3 else sys.exit(__doc__)
topic = os.environ.get("STREAM_PEER_PREFIX", "") + "weights"  # headers of its records: schema, settings
consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=5000)
newest = {record.key.decode(): json.loads(record.value) for record in consumer if record.value}
weights = newest.get(feed) or sys.exit(f"no weights of {feed}; feeds that have some: {', '.join(newest) or 'none'}")
mix = {expert["id"]: expert["mix"] for expert in weights["experts"]}
forecasts = {expert: float(probability) for expert, _, probability in (text.rpartition("=") for text in given)}
present = sum(mix.get(expert, 0.0) for expert in forecasts)  # an expert without an entry has weight 0
mixed = sum(mix.get(expert, 0.0) * p for expert, p in forecasts.items()) / present
print(f"{mixed:.4f} (status {weights['status']}, revision {weights['revision']})")
