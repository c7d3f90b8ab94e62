"""Asks a worker for its version: it has to be that of the image which asks. Run by `helm test`."""

import http.client
import json
import os
import sys
from pathlib import Path

from stream_peer import __version__

token = Path("/etc/stream-peer/http-token/token")
headers = {"Authorization": f"Bearer {token.read_text().split()[0]}"} if token.exists() else {}
connection = http.client.HTTPConnection(os.environ["WORKER"], timeout=20)
connection.request("GET", "/version", headers=headers)
answer = connection.getresponse()
if answer.status != http.client.OK:
    sys.exit(f"The worker answers {answer.status} {answer.reason}.")
running = json.load(answer)["version"]
if running != __version__:
    sys.exit(f"The worker runs {running}, this image is {__version__}.")
