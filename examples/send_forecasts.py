"""Send events of a file, one JSON object a line, to a feed's question topic.

    python examples/send_forecasts.py 127.0.0.1:9092 examples/questions.jsonl

Every event is keyed by its question, so that all events of a question stand in one partition, in order. Events may
be sent twice: a repeated event changes nothing. A deployment's topic prefix is taken from STREAM_PEER_PREFIX.
"""

import json
import os
import sys
from pathlib import Path

from kafka import KafkaProducer  # pip install kafka-python
from kafka.errors import KafkaError

bootstrap, *files = sys.argv[1:] if len(sys.argv) > 2 else sys.exit(__doc__)
topic = os.environ.get("STREAM_PEER_PREFIX", "") + "forecast-events"
sent = []
try:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=20)
    for file in files:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            sent.append(producer.send(topic, key=event["question_id"].encode(), value=line.encode()))
    producer.flush()
    for acknowledged in sent:
        acknowledged.get(timeout=30)  # raises what went wrong
except (KafkaError, OSError) as error:
    sys.exit(f"Not all events are sent: {error}. Sending them all again is safe.")
print(f"sent {len(sent)} events to {topic}")
