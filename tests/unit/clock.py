"""A clock for tests."""


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, at: float = 1_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at
