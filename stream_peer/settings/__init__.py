"""Settings: of a process, and of feeds."""
