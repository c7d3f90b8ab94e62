"""Run the stack until Ctrl-C or, with ``ONCE=1`` in the environment, check that it works, and end."""

import os
import signal
import sys
import time

from stream_peer.errors import StreamPeerError
from tests.infra.stack.checks import faults_at_rest, faults_of_alerts
from tests.infra.stack.progress import say
from tests.infra.stack.running import LIVE, ONCE, addresses, check_programs, running

_MISSING = 69
_INTERRUPTED = 130


def main() -> int:
    """Exit code: 0 all is well, 1 a check failed, 69 something that it needs is missing, 130 interrupted."""
    once = os.environ.get("ONCE", "") not in ("", "0")
    try:
        check_programs()
        _heed_signals()
        return _check() if once else _stay()
    except StreamPeerError as error:
        say(f"\nThe stack cannot run here: {error}")
        return _MISSING
    except AssertionError as error:
        say(f"\nThe stack did not start: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted; everything that was started has ended.")
        return _INTERRUPTED if once else 0


def _heed_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them with it ignored
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def _check() -> int:
    begun = time.monotonic()
    with running(ONCE) as stack:
        say(f"Rules: every `for`, window and offset is {ONCE.factor:g} times shorter than in helm/stream-peer/rules.")
        wrong = [*faults_at_rest(stack), *faults_of_alerts(stack)]
    for sentence in wrong:
        say(f"FAILED: {sentence}.")
    say(f"{'Not all' if wrong else 'All'} is well, after {time.monotonic() - begun:.0f} s.")
    return 1 if wrong else 0


def _stay() -> int:
    with running(LIVE) as stack:
        say()
        for name, where in addresses(stack).items():
            say(f"  {name + ':':<26}{where}")
        say("\nRunning on until Ctrl-C. `kill -9` a worker, and its alert fires after five minutes.")
        while True:
            time.sleep(1.0)


if __name__ == "__main__":
    sys.exit(main())
