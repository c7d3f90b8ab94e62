"""What is read off the sums of a feed: error rates, weights, the certificate and trust."""
