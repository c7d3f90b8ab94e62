"""What an adapter is: the columns that a format has, and how its rows become questions, forecasts and outcomes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stream_peer.errors import RejectedEvent, UnreadableFileError
from stream_peer.tools.formats.gathered import Gathered
from stream_peer.tools.formats.sources import ImportSource, ImportSources, SourceRow, normalised
from stream_peer.tools.formats.values import Unit, Unused


class FormatOptions(NamedTuple):
    """What the command line says of a format.

    Attributes
    ----------
    columns : mapping of str to str
        The columns of roles that are named, by role.
    unit : {"probability", "percent"}
        In which probabilities are written.
    thresholds : sequence of str
        Of a hub of models: what an observation may exceed; ``1.5x`` is a multiple of the last one before.
    expert : str or None
        Of prices: the name of the market as an expert.
    """

    columns: Mapping[str, str] = {}
    unit: Unit = "probability"
    thresholds: tuple[str, ...] = ()
    expert: str | None = None


class Adapter(NamedTuple):
    """A format.

    Attributes
    ----------
    about : str
        What the files are, in a line.
    read : callable
        Gathers what the files say.
    takes : tuple of str
        The fields of `FormatOptions` that it heeds.
    """

    about: str
    read: Callable[[ImportSources, Gathered, FormatOptions], None]
    takes: tuple[str, ...] = ()


class Columns:
    """Which column of a file has which role.

    Parameters
    ----------
    roles : mapping of str to sequence of str
        The names under which the column of a role may be found.
    named : mapping of str to str
        The columns that are named, by role.
    there : collection of str
        The normalised names of the columns of the file.
    name : str
        That of the file.

    Raises
    ------
    UnreadableFileError
        If several columns may have a role, none of which is named.
    """

    def __init__(
        self, roles: Mapping[str, Iterable[str]], named: Mapping[str, str], there: Iterable[str], name: str
    ) -> None:
        self._file, self.there = name, frozenset(there)
        self._column = {role: self._found(role, list(roles[role]), named.get(role)) for role in roles}

    def _found(self, role: str, names: list[str], named: str | None) -> str | None:
        if named is not None:
            return normalised(named) if normalised(named) in self.there else None
        found = [name for name in names if name in self.there]
        if len(found) > 1 and found[0] != names[0]:
            msg = f"{self._file}: {' or '.join(found)} may be the {role}: say which, --column {role}=…"
            raise UnreadableFileError(msg)
        return found[0] if found else None

    def has(self, *roles: str) -> bool:
        """Whether the file has a column for each of these roles."""
        return all(self._column[role] for role in roles)

    def missing(self, *roles: str) -> UnreadableFileError:
        """The error of a file that lacks a column of some of these roles."""
        lacking = [role for role in roles if not self._column[role]]
        msg = (
            f"{self._file} has no column for the {' and the '.join(lacking)}; it has {', '.join(sorted(self.there))}:"
            f" say which, {' '.join(f'--column {role}=…' for role in lacking)}"
        )
        return UnreadableFileError(msg)

    def get(self, row: SourceRow, role: str) -> Any:
        """What a row has in the column of a role; None if nothing."""
        column = self._column[role]
        return row.get(column) if column else None


class DescribedQuestions:
    """The questions that files describe, and which of them are answered by yes or no."""

    def __init__(self) -> None:
        self._others: dict[str, str] = {}

    def add(self, question: str, kind: str, *, is_yes_no: bool) -> None:
        """A question is described.

        Raises
        ------
        RejectedEvent
            If it has other answers than yes and no.
        """
        self._others[question] = "" if is_yes_no else kind
        self.check(question)

    def check(self, question: str) -> None:
        """Refuse a question that is not described, or has other answers than yes and no."""
        kind = self._others.get(question)
        if kind is None:
            raise RejectedEvent(Unused.UNKNOWN_QUESTION, message=f"question {question} is not described")
        if kind:
            raise RejectedEvent(Unused.NOT_YES_NO, message=f"question {question} is {kind}")


def check_named(columns: Mapping[str, str], sources: ImportSources) -> None:
    """Refuse a column that is named and that no file has.

    Raises
    ------
    UnreadableFileError
        With the columns that there are.
    """
    there = frozenset().union(*map(sources.columns, sources.all))
    for role, name in columns.items():
        if normalised(name) not in there:
            msg = f"no file has the column {name!r}, named for the {role}; there are {', '.join(sorted(there))}"
            raise UnreadableFileError(msg)


def one_source(sources: ImportSources, what: str, *names: str) -> list[ImportSource]:
    """The sources with these columns: at least one.

    Raises
    ------
    UnreadableFileError
        If there is none.
    """
    found = sources.having(*names)
    if not found:
        read = ", ".join(source.name for source in sources.all) or "the files"
        msg = f"{read}: none of them is the {what}, which has the columns {', '.join(map(repr, names))}"
        raise UnreadableFileError(msg)
    return found
