"""Everything but Faust that touches the world: HTTP, metrics, files, Kafka's admin API, the embedded broker."""
