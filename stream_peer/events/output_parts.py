"""``weights`` that are published in parts: each lists some of the experts, and names groups among those."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from stream_peer.events.outputs import ExpertGroup, Weights

Groups = list[ExpertGroup] | msgspec.UnsetType


def groups_of_part(groups: Sequence[ExpertGroup], listed: Collection[str]) -> Groups:
    """What a part says of groups: of each its members that are ``listed`` there, and which group it is.

    Examples
    --------
    >>> group = ExpertGroup(experts=["a", "b", "c"], kind="copies", agreement=1.0, expected=0.2, questions=50)
    >>> groups_of_part([group], {"b", "c", "d"})[0].experts
    ['b', 'c']
    """
    found = []
    for number, group in enumerate(groups):
        members = [expert for expert in group.experts if expert in listed]
        if members:
            found.append(msgspec.structs.replace(group, experts=members, number=number))
    return found or msgspec.UNSET


def joined_groups(parts: Iterable[Weights]) -> Groups:
    """The groups that parts of a record name, put together; one part may come twice. A whole record is one part.

    Examples
    --------
    >>> joined_groups([])
    UNSET
    """
    known: dict[int, ExpertGroup] = {}
    for part in parts:
        for place, group in enumerate(part.groups or []):
            number = place if group.number is msgspec.UNSET else group.number
            before = known[number].experts if number in known else []
            known[number] = msgspec.structs.replace(group, experts=sorted({*before, *group.experts}))
    return [known[number] for number in sorted(known)] or msgspec.UNSET


def joined_parts(parts: Sequence[Weights]) -> Weights:
    """The whole record of its parts in order; a record that came whole is its only part."""
    if len(parts) == 1 and parts[0].parts is msgspec.UNSET:
        return parts[0]
    experts = [expert for part in parts for expert in part.experts]
    groups = joined_groups(parts)
    return msgspec.structs.replace(parts[0], experts=experts, groups=groups, part=msgspec.UNSET, parts=msgspec.UNSET)
