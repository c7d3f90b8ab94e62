"""What is looked for in the last questions of a feed: drift, and experts who say the same."""
