import asyncio

from structlog.testing import capture_logs

from stream_peer.serve.http.server import Announcer


def test_a_worker_that_becomes_ready_says_so_once_with_its_address() -> None:
    answers = iter([(False, "starting"), (False, "recovers"), *[(True, "")] * 5])
    asked: list[bool] = []

    def ready() -> tuple[bool, str]:
        answer = next(answers)
        asked.append(answer[0])
        return answer

    async def watch() -> None:
        async with Announcer(ready, lambda: "http://127.0.0.1:1"):
            async with asyncio.timeout(20):
                while True not in asked:  # noqa: ASYNC110 - what is waited for is the code under test
                    await asyncio.sleep(0.01)

    with capture_logs() as logs:
        asyncio.run(watch())

    assert [(entry["event"], entry.get("http")) for entry in logs] == [("worker_ready", "http://127.0.0.1:1")]
    assert asked == [False, False, True]
