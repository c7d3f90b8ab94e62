"""Other ways to read the same topic, for comparison; each a process of its own.

Their common job: decode an event, count it and add its probability in the state of its question, which a changelog in
Kafka keeps, and send one output with count and mean. Bytewax keeps no changelog, and raw aiokafka only reads.
"""
