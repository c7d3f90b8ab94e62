"""The settings of a feed, which travel as data in its log."""
