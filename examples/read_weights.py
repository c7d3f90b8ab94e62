"""Mix forecasts by the newest weights of a feed: read_weights.py BOOTSTRAP FEED EXPERT=PROBABILITY ..."""

import json
import os
import sys

from kafka import KafkaConsumer  # pip install kafka-python zstandard

bootstrap, feed, *given = sys.argv[1:] if len(sys.argv) > 3 else sys.exit(__doc__)
topic = os.environ.get("STREAM_PEER_PREFIX", "") + "weights"  # headers of its records: schema, settings
consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=5000)
values = {record.key: record.value for record in consumer}.values()  # without a value: the feed was deleted
records = [r for r in map(json.loads, filter(None, values)) if r["feed"] == feed] or sys.exit(f"no weights of {feed}")
weights = max(records, key=lambda record: record["revision"])  # of thousands of experts there are several: its parts
mix = {e["id"]: e["mix"] for r in records if r["revision"] == weights["revision"] for e in r["experts"]}  # others: 0
forecasts = {expert: float(probability) for expert, _, probability in (text.rpartition("=") for text in given)}
mixed = sum(mix.get(e, 0) * p for e, p in forecasts.items()) / sum(mix.get(e, 0) for e in forecasts)
print(f"{mixed:.4f} (status {weights['status']}, revision {weights['revision']})")
