"""Other ways to read the same topic, for comparison; each a process of its own."""
