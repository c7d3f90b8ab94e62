"""``python -m stream_peer.cli``."""

from stream_peer.cli import main

if __name__ == "__main__":
    main()
