"""Asking an HTTP server once."""

import urllib.error
import urllib.request


def ask(request: str | urllib.request.Request, patience: float = 10.0) -> tuple[int, str]:
    """Status and body of the answer to a request, or at a URL; (0, why) if there is none within so many seconds."""
    try:
        with urllib.request.urlopen(request, timeout=patience) as answer:  # noqa: S310 - of a test
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
    except OSError as error:
        return 0, str(error)
