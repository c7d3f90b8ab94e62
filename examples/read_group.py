"""Print the forecast of a question with options or thresholds, as ``read_group.py URL FEED GROUP``.

URL is that of any worker, such as http://127.0.0.1:8080. If workers want a token, it is taken from STREAM_PEER_TOKEN.
"""

import json
import os
import sys
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen


def main(url, feed, group):
    """Ask a worker, who sends us on to the one that owns the feed, and print a line for each part."""
    token = os.environ.get("STREAM_PEER_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    path = f"feeds/{quote(feed, safe='')}/groups/{quote(group, safe='')}"
    try:
        with urlopen(Request(f"{url}/{path}", headers=headers), timeout=30) as response:  # noqa: S310 - of the user
            record = json.load(response)
    except HTTPError as error:
        sys.exit(json.load(error)["detail"])
    except URLError as error:
        sys.exit(f"{url} does not answer: {error.reason}")
    for kind in ("options", "cdf"):
        for part in record.get(kind, ()):
            name = part["name"] if kind == "options" else f"at most {part['name']}"
            said = "no forecast" if part["mix"] is None else f"{part['mix']:.1%}, stretched {part['stretched']:.1%}"
            print(f"{name}: {said}{', came true' if part['outcome'] == 1 else ''}")
    print(f"trust {record['trust']}, revision {record['revision']}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
