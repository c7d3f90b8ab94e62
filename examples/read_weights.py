"""Mix forecasts by the newest weights of a feed: read_weights.py BOOTSTRAP FEED EXPERT=PROBABILITY ...

Prefix and security of a deployment are taken from its own variables: STREAM_PEER_PREFIX, STREAM_PEER_SECURITY__...
"""

import sys

from stream_peer_client import StreamPeerClientError, WeightsReader  # pip install ./client


def main(bootstrap, feed, *given):
    """Read the weights, then print the mixed forecast, plain and stretched."""
    forecasts = {expert: float(probability) for expert, _, probability in (text.rpartition("=") for text in given)}
    try:
        with WeightsReader.from_environment(bootstrap, feeds=[feed]) as reader:
            weights = reader.weights(feed)
            mixed = weights.mix(forecasts)
    except StreamPeerClientError as error:
        sys.exit(str(error))
    status = f"status {weights.status}, revision {weights.revision}"
    print(f"mixed {mixed.mix:.4f}, stretched {mixed.stretched:.4f} ({status})")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
