"""Serve mixed forecasts over HTTP, as ``serve_mix.py BOOTSTRAP [PORT]``.

    curl -d '{"e17": 0.62, "e4": 0.35}' http://127.0.0.1:8090/feeds/econ/mix

The weights are followed in the background and answers come from memory. While Kafka is away they go on, with `stale`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stream_peer_client import StreamPeerClientError, UnknownFeedError, WeightsReader


def answer(reader, path, body):
    """Status and document for a request."""
    match path.strip("/").split("/"):
        case ["feeds", feed, "mix"]:
            weights = reader.weights(feed)
            mixed = weights.mix({str(expert): float(forecast) for expert, forecast in dict(json.loads(body)).items()})
            trust = {"status": weights.status, "status_reasons": weights.status_reasons, "stale": weights.stale}
            return 200, {**mixed._asdict(), **trust, "revision": weights.revision, "at": weights.at}
    return 404, {"detail": "POST /feeds/FEED/mix"}


class Handler(BaseHTTPRequestHandler):
    """Answers with JSON, whatever comes."""

    def do_POST(self):
        """Mix the forecasts of the body."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1_000_000))
        try:
            code, document = answer(self.server.reader, self.path, body)
        except UnknownFeedError as error:
            code, document = 404, {"detail": str(error)}
        except (ValueError, TypeError, LookupError) as error:  # no JSON, no probability, nobody with a weight
            code, document = 422, {"detail": str(error)}
        except StreamPeerClientError as error:  # nothing is read yet
            code, document = 503, {"detail": str(error)}
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())


def main(bootstrap, port="8090"):
    """Follow the weights, and serve until the program is ended."""
    reader = WeightsReader.from_environment(bootstrap)
    reader.start()
    with ThreadingHTTPServer(("127.0.0.1", int(port)), Handler) as server:
        server.reader = reader
        print(f"serving at http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 1 else sys.exit(__doc__)
