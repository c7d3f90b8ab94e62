"""Arrays of numbers, and the checks that the arguments of formulas get.

Every public formula says in a line above it what each argument has to be, ``@checked(share=SHARE, ...)``. Called by its
name it checks its arguments first, once, and takes lists and plain numbers as well as arrays. A caller that knows its
numbers to be right, such as a fold over millions of questions, calls ``unchecked(formula)``: the same formula without
the checks, which needs arrays of the types that its signature names.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, wraps
from operator import add, attrgetter
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from stream_peer.errors import ForecastRangeError, FormulaInputError

__all__ = [
    "Answers",
    "BitArray",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "SmallIntArray",
]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
IndexArray: TypeAlias = npt.NDArray[np.int32]
SmallIntArray: TypeAlias = npt.NDArray[np.int8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
BitArray: TypeAlias = npt.NDArray[np.uint8]

Answers: TypeAlias = float | FloatArray | IntArray | SmallIntArray | BitArray
"""An answer for all forecasts or one for each: 0, 1, or, if it is soft, anything between."""

LARGEST = 1e50
"""No number may be larger: products of six of them are still finite, and no sum over questions comes near it."""

Formula = TypeVar("Formula", bound=Callable[..., Any])


class Check(Protocol):
    """What an argument has to be."""

    def read(self, name: str, value: Any) -> Any:
        """The argument as the formula takes it, its axes counted; its numbers are not looked at yet."""
        ...

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:
        """Refuse numbers out of range, where ``among`` says that they count; without those that do not."""
        ...

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Name, axes and shape of each array in it that has to fit the other arguments."""
        ...


@dataclass(frozen=True)
class Numbers:
    """Numbers within a range.

    Attributes
    ----------
    axes : str
        Of an array, by name: ``"t n"``; equal names are of equal length, and ``"4 n"`` has four rows. ``"... n"`` may
        have more axes before, which broadcast. Empty: one number. ``"..."``: an array that broadcasts, or one number.
        ``"*"``: either, of any shape.
    low, high : float
        Ends of the range, which belong to it.
    above, below : bool
        Whether ``low``, and ``high``, do not belong to it.
    kind : type
        ``np.float64``; or of whole numbers ``np.int64``, ``np.int8``; or ``np.bool_``.
    where : str
        Another argument that says which of the numbers count. The others may be anything.
    error : type
        What is raised.
    """

    axes: str = ""
    low: float = -LARGEST
    high: float = LARGEST
    above: bool = False
    below: bool = False
    kind: type[np.generic] = np.float64
    where: str = ""
    error: type[FormulaInputError] = FormulaInputError

    def read(self, name: str, value: Any) -> Any:
        """An array of the kind, or a plain number."""
        array = self._array(name, value)
        axes = self.axes.split()
        fits = array.ndim >= len(axes) - 1 if axes[:1] == ["..."] else array.ndim == len(axes) or self.axes == "*"
        if not fits:
            what = f"({', '.join(axes)})" if axes else "a single number"
            msg = f"{name} has the shape {array.shape}, not {what}"
            raise FormulaInputError(msg)
        if array.ndim or (self.axes and isinstance(value, np.ndarray)):
            return array
        return value if isinstance(value, float | int) and self.kind is np.float64 else array.item()

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:
        """Refuse numbers out of range, naming the first of them and its place; 0 where they do not count."""
        if among is not None:
            value = np.where(among, value, min(max(self.low, 0.0), self.high))
        if self._holds(value):
            return value
        array = np.asarray(value)
        inside = (array > self.low if self.above else array >= self.low) & (
            array < self.high if self.below else array <= self.high
        )
        place = int(np.argmin(np.ravel(inside)))
        at = f"[{place}]" if np.ndim(array) else ""
        msg = f"{name}{at} is {np.ravel(array)[place].item()!r}, {self._range()}"
        raise self.error(msg)

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Itself, unless it is one number or of any shape."""
        if self.axes not in ("", "*"):
            yield name, self.axes, np.shape(value)

    def _array(self, name: str, value: Any) -> npt.NDArray[Any]:
        if isinstance(value, np.ndarray) and value.dtype == self.kind:
            return value
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError) as fault:
            msg = f"{name} is {value!r}, no array of numbers: {fault}"
            raise FormulaInputError(msg) from None
        if array.dtype.kind not in "bfiu":
            msg = f"{name} is {value!r}, no number and no array of numbers"
            raise FormulaInputError(msg)
        if self.kind is not np.float64 and array.size:
            self._check_whole(name, array)
        return array.astype(self.kind)

    def _check_whole(self, name: str, array: npt.NDArray[Any]) -> None:
        """Refuse what a conversion would change."""
        limits = np.iinfo(np.int8 if self.kind is np.int8 else np.int64)
        least, most = (0, 1) if self.kind is np.bool_ else (limits.min, limits.max)
        whole = (array >= least) & (array <= most) & (array == np.floor(array))
        if not np.logical_and.reduce(whole, axis=None):
            place = int(np.argmin(np.ravel(whole)))
            at = f"[{place}]" if array.ndim else ""
            msg = f"{name}{at} is {np.ravel(array)[place].item()!r}, {self._range()}"
            raise self.error(msg)

    def _holds(self, value: Any) -> bool:
        if self.kind is np.bool_:
            return True
        if isinstance(value, np.ndarray):
            if not value.size:
                return True
            least, most = np.minimum.reduce(value, axis=None), np.maximum.reduce(value, axis=None)
        else:
            least = most = value
        return bool(
            (least > self.low if self.above else least >= self.low)
            and (most < self.high if self.below else most <= self.high)
        )

    def _range(self) -> str:
        if self.kind is np.bool_:
            return "neither True nor False"
        whole = "" if self.kind is np.float64 else "a whole number "
        if not (self.above or self.below):
            return f"not {whole}within {self.low:g}..{self.high:g}"
        return f"not {whole}within {'(' if self.above else '['}{self.low:g}, {self.high:g}{')' if self.below else ']'}"


@dataclass(frozen=True)
class Optional:
    """A check of an argument that may be None."""

    check: Check

    def read(self, name: str, value: Any) -> Any:
        """None, or what the check reads."""
        return None if value is None else self.check.read(name, value)

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:
        """None, or what the check admits."""
        return None if value is None else self.check.admit(name, value, among)

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """None has no array."""
        if value is not None:
            yield from self.check.arrays(name, value)


@dataclass(frozen=True)
class Fields:
    """A named tuple or a dataclass with checks of its fields.

    Attributes
    ----------
    kind : type or None
        Its class; None: that of ``self``.
    fields : mapping
        The check of each field; the others are taken as they are.
    sound : callable, optional
        Refuses fields that are fine one by one, but not together.
    where : str
        As of `Numbers`.
    """

    kind: type[Any] | None
    fields: Mapping[str, Check]
    sound: Callable[[Any], None] | None = None
    where: str = ""

    def read(self, name: str, value: Any) -> Any:
        """A record of what the checks of its fields read; the same one if they change nothing."""
        if self.kind is not None and not isinstance(value, self.kind):
            msg = f"{name} is {value!r}, no {self.kind.__name__}"
            raise FormulaInputError(msg)
        return self._with(value, lambda field, check: check.read(_path(name, field), getattr(value, field)))

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:
        """Refuse fields out of range, and fields that do not go together."""
        value = self._with(value, lambda field, check: check.admit(_path(name, field), getattr(value, field), among))
        if self.sound is not None:
            self.sound(value)
        return value

    def _with(self, value: Any, of: Callable[[str, Check], Any]) -> Any:
        found = {field: of(field, check) for field, check in self.fields.items()}
        if all(found[field] is getattr(value, field) for field in found):
            return value
        return value._replace(**found) if hasattr(value, "_replace") else replace(value, **found)

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Those of its fields."""
        for field, check in self.fields.items():
            yield from check.arrays(_path(name, field), getattr(value, field))


@dataclass(frozen=True)
class Each:
    """A sequence, every element of which gets the same check; elements need not fit one another.

    Attributes
    ----------
    check : Check
    count : int or None
        How many elements there are; None: any number.
    fewest : int
        And how many at least.
    """

    check: Check
    count: int | None = None
    fewest: int = 0

    def read(self, name: str, value: Any) -> Any:
        """A tuple of what the check reads."""
        try:
            elements = tuple(value)
        except TypeError:
            msg = f"{name} is {value!r}, no sequence"
            raise FormulaInputError(msg) from None
        if len(elements) < self.fewest or self.count not in (None, len(elements)):
            msg = f"{name} has {len(elements)} elements, not {self.count or f'{self.fewest} or more'}"
            raise FormulaInputError(msg)
        return tuple(self.check.read(f"{name}[{place}]", element) for place, element in enumerate(elements))

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:
        """Refuse elements out of range."""
        return tuple(self.check.admit(f"{name}[{place}]", element, among) for place, element in enumerate(value))

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Those that broadcast."""
        for place, element in enumerate(value):
            for found, axes, shape in self.check.arrays(f"{name}[{place}]", element):
                if axes.startswith("..."):
                    yield found, axes, shape


@dataclass(frozen=True)
class Has:
    """An object that has these methods, or is itself to be called.

    Attributes
    ----------
    methods : tuple of str
    """

    methods: tuple[str, ...] = ("__call__",)

    def read(self, name: str, value: Any) -> Any:
        """The object as it is."""
        if not all(callable(getattr(value, method, None)) for method in self.methods):
            msg = f"{name} is {value!r}, and has no {', '.join(self.methods)}"
            raise FormulaInputError(msg)
        return value

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:  # noqa: ARG002
        """The object as it is."""
        return value

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:  # noqa: ARG002
        """None."""
        yield from ()


@dataclass(frozen=True)
class OneOf:
    """One of some words.

    Attributes
    ----------
    words : tuple of str
    """

    words: tuple[str, ...]

    def read(self, name: str, value: Any) -> Any:
        """The word."""
        if not isinstance(value, str) or value not in self.words:
            msg = f"{name} is {value!r}, not one of {', '.join(self.words)}"
            raise FormulaInputError(msg)
        return value

    def admit(self, name: str, value: Any, among: BoolArray | None = None) -> Any:  # noqa: ARG002
        """The word."""
        return value

    def arrays(self, name: str, value: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:  # noqa: ARG002
        """None."""
        yield from ()


NUMBER = Numbers()
AT_LEAST_0 = Numbers(low=0.0)
POSITIVE = Numbers(low=0.0, above=True)
BOUND = Numbers(low=0.0, high=math.inf)
SHARE = Numbers(low=0.0, high=1.0)
HALF = Numbers(low=0.0, high=0.5)
CHANCE = Numbers(low=0.0, high=1.0, above=True)
CONFIDENCE = Numbers(low=0.0, high=1.0, below=True)
INSIDE = Numbers(low=0.0, high=1.0, above=True, below=True)
ALIGNED = Numbers(low=-1.0, high=1.0)
COUNT = Numbers(low=1, high=2**53, kind=np.int64)
SIZE = Numbers(low=0, high=2**53, kind=np.int64)
BIT = Numbers(low=0, high=1, kind=np.int64)

CLIP = Numbers(low=0.0, high=0.5, above=True, below=True)

FORECASTS = Numbers("... n", 0.0, 1.0, error=ForecastRangeError)
FORECAST_ROW = Numbers("n", 0.0, 1.0, error=ForecastRangeError)
EACH_FORECAST = Numbers("...", 0.0, 1.0, error=ForecastRangeError)
ANSWERS = Numbers("...", 0.0, 1.0)
ANSWER_BITS = Numbers("...", 0, 1, kind=np.int8)
OUTCOMES = Numbers("n", 0, 1, kind=np.int8)
BITS = OUTCOMES
VOTES = Numbers("n", -1, 1, kind=np.int8)
VOTE_ROWS = Numbers("t n", -1, 1, kind=np.int8)
COIN = Numbers("*", 0, 1, kind=np.int8)
RATE = Numbers("...", 0.0, 1.0)
HALF_RATE = Numbers("...", 0.0, 0.5)
SIDES = Numbers("... n", low=0.0)
WEIGHTS = Numbers("... n", 0.0, 1.0)
LOGS = Numbers("... n", -math.inf, 1e300, where="awake")
REGRETS = Numbers("... n", low=-math.inf, high=1e15, where="awake")
"""Learning rates may be as large as `ada_hedge_rate` without any gap: 1e290, and what rounding adds."""
LEARNING_RATE = Numbers("...", 0.0, 1e291)
THRESHOLDS = Optional(Numbers("... n", 0.0, 1.0))
"""A prior may be as large as that of a newcomer, e^700; only its logarithm is taken."""
PRIOR = Optional(Numbers("... n", 0.0, 1e305))
TEAMS = Optional(Numbers("n", -(2**53), 2**53, kind=np.int64))
AWAKE = Optional(Numbers("... n", kind=np.bool_))


def checked(*together: Callable[..., None], **checks: Check) -> Callable[[Formula], Formula]:
    """Have a formula check its arguments when it is called by its name.

    Parameters
    ----------
    *together : callable
        Take the arguments by name, and refuse those that do not go together.
    **checks : Check
        Of each argument; ``self`` and ``cls`` may go without.

    Returns
    -------
    callable
        A decorator. What it returns raises `FormulaInputError`, which names argument and value.

    Examples
    --------
    >>> @checked(share=SHARE, sums=Numbers("n"))
    ... def scaled(share, sums):
    ...     return share * sums
    >>> scaled(0.5, [1, 2])
    array([0.5, 1. ])
    >>> scaled(0.5, [1, float("nan")])
    Traceback (most recent call last):
    ...
    stream_peer.errors.FormulaInputError: sums[1] is nan, not within -1e+50..1e+50
    """

    def with_checks(formula: Formula) -> Formula:
        names = tuple(inspect.signature(formula).parameters)
        if {*names} - {"self", "cls"} != {*checks} - {"self"}:
            msg = f"{formula.__qualname__} has the arguments {names}, checks are of {tuple(checks)}"
            raise TypeError(msg)

        @wraps(formula)
        def public(*args: Any, **kwargs: Any) -> Any:
            if len(args) > len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
                return formula(*args, **kwargs)  # a call that Python refuses
            given = dict(zip(names, args, strict=False)) | kwargs
            for name in given.keys() & checks.keys():
                given[name] = checks[name].read(name, given[name])
            known = {name: check for name, check in checks.items() if name in given}
            _check_fit([found for name, check in known.items() for found in check.arrays(name, given[name])])
            for name, check in known.items():
                given[name] = check.admit(name, given[name], given.get(getattr(check, "where", "")))
            for refuse in together:
                refuse(**given)
            return formula(**given)

        return public  # type: ignore[return-value]  # it has the arguments of the formula

    return with_checks


def unchecked(formula: Formula) -> Formula:
    """The formula without the checks of its arguments, for callers that know them to be right.

    Parameters
    ----------
    formula : callable
        A public formula.

    Returns
    -------
    callable

    Examples
    --------
    >>> import numpy as np
    >>> from stream_peer.numerics.losses import squared_loss
    >>> unchecked(squared_loss)(np.array([0.9, 0.5]), 1)
    array([0.01, 0.25])
    """
    core: Formula = formula.__wrapped__  # type: ignore[attr-defined]  # `checked` has set it
    return core


_getter: Any = cache(lambda kind: attrgetter(*(field.name for field in fields(kind))))


def columns_of(sums: Any) -> tuple[float, ...]:
    """The fields of a dataclass of several sums, in their order."""
    found: tuple[float, ...] = _getter(type(sums))(sums)
    return found


class AddingSums:
    """Sums over questions, in a frozen dataclass: those of two sets of questions add up, field by field."""

    __slots__ = ()

    def merge(self, other: Self) -> Self:
        """Sums of both."""
        check_same(self, other)
        return type(self)(*map(add, columns_of(self), columns_of(other)))


def check_same(sums: object, other: object) -> None:
    """Refuse to add sums of one kind to those of another, or of other experts.

    Raises
    ------
    FormulaInputError
        If the other ones are not of the same class.
    """
    if type(other) is not type(sums):
        msg = f"other is {other!r}, no {type(sums).__name__}"
        raise FormulaInputError(msg)
    for name in (field.name for field in fields(sums)):  # type: ignore[arg-type]  # sums are dataclasses
        shapes = np.shape(getattr(sums, name)), np.shape(getattr(other, name))
        if shapes[0] != shapes[1]:
            msg = f"other.{name} has the shape {shapes[1]}, which does not fit {shapes[0]}"
            raise FormulaInputError(msg)


def _check_broadcast(name: str, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
    """Refuse an array with more rows than the first one has."""
    if len(shape) > len(first) or any(n not in (1, m) for n, m in zip(shape[-2::-1], first[-2::-1], strict=False)):
        msg = f"{name} has the shape {shape}, which does not fit {first}"
        raise FormulaInputError(msg)


def _path(name: str, field: str) -> str:
    """Of an argument's field; those of the object itself are called by their names alone."""
    return field if name == "self" else f"{name}.{field}"


def _check_fit(arrays: list[tuple[str, str, tuple[int, ...]]]) -> None:
    """Refuse arrays of which axes with one name differ in length, or leading axes do not broadcast."""
    lengths: dict[str, tuple[int, str]] = {}
    leading: list[tuple[int, ...]] = []
    first: tuple[int, ...] | None = None
    for name, spelt, shape in arrays:
        axes = spelt.split()
        if axes[0] == "...":
            del axes[0]
            leading.append(shape if axes in ([], ["n"]) else (*shape[: len(shape) - len(axes)], 1))
        if spelt == "... n":
            first = first if first is not None else shape
            _check_broadcast(name, shape, first)
        for axis, length in zip(reversed(axes), reversed(shape), strict=False):
            known, of = lengths.setdefault(axis, (int(axis), spelt) if axis.isdigit() else (length, name))
            if length != known:
                msg = f"{name} has the shape {shape}, which does not fit {f'({spelt})' if axis.isdigit() else of}"
                raise FormulaInputError(msg)
    try:
        np.broadcast_shapes(*leading)
    except ValueError:
        msg = f"{', '.join(f'{name} {shape}' for name, _, shape in arrays)} do not fit one another"
        raise FormulaInputError(msg) from None
