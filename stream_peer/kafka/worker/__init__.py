"""The stages on Kafka, through Faust, which ``faust_bridge`` alone imports.

The order of writes is the whole of it: outputs acknowledged, then state entries, then the head, then the group's
offset. Everything here serves that order over kills, freezes and rebalances; decisions are the engine's.
"""
