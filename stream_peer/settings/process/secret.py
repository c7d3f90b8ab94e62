"""A text that must not be shown."""


class Secret:
    """A text that shows itself as ``***`` wherever it is printed, logged or encoded.

    Examples
    --------
    >>> Secret("hunter2"), f"{Secret('hunter2')}", Secret("hunter2").reveal()
    (***, '***', 'hunter2')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.reveal() == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))
