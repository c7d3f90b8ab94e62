"""Shadows in a settings document: variants of a feed's mixers that run beside it, each over the feed's own settings."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

MOST_SHADOWS = 8
_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_PARTS = ("name", "mixer", "stretch")

Fault = tuple[str, str]
Kind = Literal["rounds", "meaning", "else"]
"""What a feed setting changes: which rounds there are, what the sums mean, or nothing of what is forecast."""


def is_shadow_name(name: object) -> bool:
    """Whether a shadow can be named so: by 1..40 letters, digits, . - _."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


class GivenShadows(NamedTuple):
    """The shadows of a document, complete but unchecked, with the place of each in its list; and what is wrong."""

    shadows: list[tuple[int, dict[str, Any]]]
    faults: list[Fault]


def over_live(given: object, live: Mapping[str, Any], kinds: Mapping[str, Kind]) -> GivenShadows:
    """Shadows as they are given, over the settings of the feed: what a shadow leaves out is as it is live.

    Parameters
    ----------
    given : object
        Of the document: a list of mappings, if it is right.
    live : mapping
        The feed's settings, as they are given.
    kinds : mapping of str to str
        What each feed setting changes.

    Examples
    --------
    >>> over_live([{"name": "eager", "mixer": {"peer_rate": 48}}], {"mixer": {"truth_rate": 30}}, {})
    GivenShadows(shadows=[(0, {'name': 'eager', 'mixer': {'truth_rate': 30, 'peer_rate': 48}})], faults=[])
    """
    if given is None:
        return GivenShadows([], [])
    if not isinstance(given, Sequence) or isinstance(given, str):
        return GivenShadows([], [("shadows", "must be a list of shadows, each with a name and what it does otherwise")])
    found, faults, names = GivenShadows([], []), [], set[object]()
    if len(given) > MOST_SHADOWS:
        faults.append(("shadows", f"{len(given)} are given, a feed can have {MOST_SHADOWS}"))
    for place, shadow in enumerate(given[:MOST_SHADOWS]):
        path = f"shadows.{place}"
        wrong = [(f"{path}{part}", message) for part, message in _faults(shadow, names, kinds)]
        faults += wrong
        if not wrong:
            names.add(shadow["name"])
            found.shadows.append((place, _complete(shadow, live)))
    return found._replace(faults=faults)


def _complete(shadow: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    own, of_feed = shadow.get("mixer"), live.get("mixer")
    mixers = [mixer for mixer in (of_feed, own) if mixer is not None]
    nested = all(isinstance(mixer, Mapping) for mixer in mixers)
    mixer = {name: value for one in mixers for name, value in one.items()} if nested else own
    stretch = {"stretch": live["stretch"]} if live.get("stretch") is not None else {}
    return {**stretch, **shadow, "mixer": {} if mixer is None else mixer}


def _faults(shadow: object, names: Collection[object], kinds: Mapping[str, Kind]) -> list[Fault]:
    if not isinstance(shadow, Mapping):
        return [("", "must be a mapping with a name and what the shadow does otherwise: mixer, stretch")]
    name = shadow.get("name")
    faults = []
    if not is_shadow_name(name):
        faults.append((".name", "a shadow is named by 1..40 letters, digits, . - _"))
    elif name in names:
        faults.append((".name", f"another shadow is named {name}"))
    others = (str(part) for part in shadow if part not in _PARTS)
    return [*faults, *((f".{part}", _refusal(part, name, kinds.get(part))) for part in others)]


def _refusal(part: str, name: object, kind: Kind | None) -> str:
    """Why a shadow cannot have a setting."""
    if kind is None:
        return "not known here; a shadow has name, mixer and stretch"
    if kind == "else":
        return "does not change what is forecast; a shadow has name, mixer and stretch"
    what = "which rounds there are" if kind == "rounds" else "what the sums mean"
    source = "FILE" if kind == "rounds" else "FILE (or --from-log FEED)"
    return (
        f"changes {what}, and a shadow reads the sums of the live feed; compare it in one replay: "
        f"stream-peer replay {source} --shadow {name if isinstance(name, str) else 'NAME'}:{part}=VALUE"
    )
