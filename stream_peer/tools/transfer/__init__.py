"""A feed as a file, and a file as a feed."""
