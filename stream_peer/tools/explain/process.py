"""The process that explains weights for a worker's HTTP server: reads a task from its standard input, writes an answer.

It bounds its memory, yields the processor to the worker, and ends when its standard input does: the worker is gone.
"""

import os
import resource
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from stream_peer.errors import StreamPeerError
from stream_peer.serve.explanation import (
    EXIT_FAULT,
    ExplainFault,
    ExplainTask,
    WeightExplanation,
    decode_task,
    encode_explanation,
)

MOST_MEMORY = 512_000_000
"""Bytes of data: the process shares the memory of the worker's container."""

Explain: TypeAlias = Callable[[ExplainTask], WeightExplanation | ExplainFault]


def main(explain: Explain | None = None, most_memory: int = MOST_MEMORY) -> None:
    """Answer one task, and exit.

    Parameters
    ----------
    explain : callable or None
        Computes the answer; by default from the log in Kafka.
    most_memory : int
    """
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # before numpy: each thread has buffers of its own
    _bound(most_memory)
    task = decode_task(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_worker, daemon=True).start()
    answer = _answered(task, explain or _from_kafka, most_memory)
    sys.stdout.buffer.write(encode_explanation(answer))
    sys.stdout.buffer.flush()
    sys.exit(EXIT_FAULT if isinstance(answer, ExplainFault) else 0)


def _answered(task: ExplainTask, explain: Explain, most_memory: int) -> WeightExplanation | ExplainFault:
    try:
        return explain(task)
    except StreamPeerError as error:
        return ExplainFault("log", str(error))
    except MemoryError:
        pass  # what filled the memory is still referred to here; it is not beyond the handler
    except Exception:  # noqa: BLE001 - the worker logs it
        return ExplainFault("code", traceback.format_exc()[-10_000:])
    return ExplainFault("memory", f"the explanation needs more memory than {most_memory / 1e6:g} MB")


def _from_kafka(task: ExplainTask) -> WeightExplanation | ExplainFault:
    from stream_peer.tools.explain.weight import explain_from_kafka

    return explain_from_kafka(*task)


def _bound(most_memory: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = most_memory if hard == resource.RLIM_INFINITY else min(most_memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    os.nice(10)
    with suppress(OSError):  # Linux: if memory runs out all the same, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")


def _end_with_the_worker() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing more is ever written: it returns when the pipe is closed
    os._exit(1)
