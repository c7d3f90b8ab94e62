"""What a feed computes with: a method, and those that a worker serves."""
