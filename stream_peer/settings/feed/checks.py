"""Feed settings that are good each by itself, and wrong together, in a worker, or without use."""

from collections.abc import Mapping
from typing import Any

from stream_peer.settings.feed.model import (
    BUILT_IN,
    UNSTATED_METHOD,
    FeedSettings,
    MethodSettings,
    MixerSettings,
    changed_settings,
)

_CLASSES_NEED = 3
_TRUST_PRIOR = "trust_prior"

_OF_GROUPS = ("two-groups", "equal-groups", "three-references", "three-class-references")
_OF_OTHERS = ("moments", "class-moments")
_OF_THREE = ("class-moments", "three-references", "three-class-references")


def contradictions(settings: FeedSettings, *, in_replay: bool) -> list[tuple[str, str]]:
    """Settings that contradict each other, or that a worker does not serve: name and reason."""
    faults = [] if in_replay else only_in_replay(settings)
    if settings.guard == "on" and (settings.preset == "paper" or settings.method != BUILT_IN):
        faults.append(("guard", "guards the default reference answers, no variants of them"))
    named = {name for name, _ in faults}
    faults += [fault for fault in _of_method(settings) if fault[0] not in named]
    if settings.vote_rule == "own-median" and settings.min_experts < _CLASSES_NEED:
        message = (
            f"own-median reads an error rate for each outcome off three voters a round at least; "
            f"min_experts is {settings.min_experts}"
        )
        faults.append(("vote_rule", message))
    if not mixes(settings):
        faults += _of_mixer_auto(settings)
    return [*faults, *(("mixer", message) for message in wrong_priors(settings.mixer))]


def _of_mixer_auto(settings: FeedSettings) -> list[tuple[str, str]]:
    """Settings other than the default that this method does not read, since it mixes otherwise: name and reason."""
    names = [f"mixer.{name}" for name in changed_settings(settings.mixer) if name != _TRUST_PRIOR]
    names += ["stretch"] if "stretch" in unread(settings) and not settings.stretch else []
    why = "the method that is chosen does not use it; leave it out, or set it to the default"
    faults = [(name, why) for name in names]
    if settings.shadows:
        faults.append(("shadows", "nothing is mixed but by the selection weights; a shadow varies the mixer auto"))
    return faults


def wrong_priors(mixer: MixerSettings) -> list[str]:
    """What is wrong with the priors of the mixers, each good in itself."""
    total = mixer.prior_mean + mixer.prior_peer + mixer.prior_truth_slow + mixer.prior_truth_fast
    return [f"the four priors sum to {total:g}, not 1"] if abs(total - 1.0) > 1e-9 else []


def only_in_replay(settings: FeedSettings) -> list[tuple[str, str]]:
    """Settings that a worker does not serve: name and reason."""
    why = "the service runs the default; compare other values with stream-peer replay --set"
    faults = [(f"method.{name}", why) for name in changed_settings(settings.method)]
    if settings.loss == "spherical":
        faults.append(("loss", "a worker serves squared and log; compare spherical with stream-peer replay --set"))
    return faults


def mixes(settings: FeedSettings) -> bool:
    """Whether forecasts are mixed by all mixers, in shares that outcomes move."""
    return settings.preset != "paper" and settings.method.mixer == "auto"


def unread(settings: FeedSettings) -> tuple[str, ...]:
    """Settings that the method of the feed does not read."""
    if mixes(settings):
        return ()
    return ("mixer", "stretch") if settings.preset == "paper" else ("mixer",)


def unused_settings(given: Mapping[str, Any], settings: FeedSettings) -> list[tuple[str, str]]:
    """Settings that the document states and the method of the feed does not use: name and reason.

    A version that is not stated may still rise when settings are applied, so it uses them all.
    """
    live = f"mixer.{_TRUST_PRIOR}"
    if not mixes(settings):
        why = "nothing is mixed but by the selection weights; leave it out"
        return [(live, why)] if _trust_prior(given) == "on" else []
    if given.get("method_version") != UNSTATED_METHOD:
        return []
    shadows = given.get("shadows")
    names = [live] if _trust_prior(given) == "on" else []
    for place, shadow in enumerate(shadows if isinstance(shadows, list | tuple) else ()):
        names += [f"shadows.{place}.{live}"] if _trust_prior(shadow) is not None else []
    return [(name, "from version 2 of the method on; state method_version: 2, or leave it out") for name in names]


def _trust_prior(given: object) -> object:
    mixer = given.get("mixer") if isinstance(given, Mapping) else None
    return mixer.get(_TRUST_PRIOR) if isinstance(mixer, Mapping) else None


def _of_method(settings: FeedSettings) -> list[tuple[str, str]]:
    """Combinations that cannot be computed: name and reason."""
    return [*_references(settings), *_rates(settings), *_learners(settings), *_presets(settings)]


def _references(settings: FeedSettings) -> list[tuple[str, str]]:
    method = settings.method
    faults = []
    if method.against == "other-group" and method.groups == "fixed":
        why = "two fixed groups err differently, and one price is for all; set method.groups to redrawn"
        faults.append(("method.against", why))
    if method.groups != BUILT_IN.groups and not _by_groups(method):
        faults.append(("method.groups", f"nobody asks groups while method.against is {method.against}"))
    if settings.vote_rule == "own-median" and method.reference in ("mean", "product"):
        faults.append(("method.reference", f"{method.reference} takes no votes; set vote_rule to half"))
    return faults


def _rates(settings: FeedSettings) -> list[tuple[str, str]]:
    method, faults = settings.method, []
    if method.error_rate in _OF_GROUPS and not _by_groups(method):
        why = f"{method.error_rate} estimates how often groups err; set method.against to group-a or other-group"
        faults.append(("method.error_rate", why))
    if method.error_rate in _OF_OTHERS and method.against != "others":
        why = (
            f"{method.error_rate} estimates how often the answers of all others err; method.against is {method.against}"
        )
        faults.append(("method.error_rate", why))
    if method.error_rate in _OF_THREE and settings.min_experts < 3:
        faults.append(("min_experts", f"{method.error_rate} needs at least three experts a round"))
    if method.error_rate != "moments" and settings.vote_rule == "own-median":
        faults.append(("method.error_rate", "the vote rule own-median brings its own; set vote_rule to half"))
    return faults + _known(method)


def _by_groups(method: MethodSettings) -> bool:
    return method.against in ("group-a", "other-group")


def _known(method: MethodSettings) -> list[tuple[str, str]]:
    zero, one = method.known_zero, method.known_one
    if method.error_rate != "known":
        return [("method.known_zero", "needs method.error_rate known")] if (zero, one) != (None, None) else []
    if zero is None or one is None:
        return [("method.error_rate", "known needs method.known_zero and method.known_one")]
    if zero + one > 0.8:
        return [("method.known_zero", f"{zero:g} and {one:g} sum to more than 0.8: such answers say next to nothing")]
    if method.flip_probability and max(zero, one) > 0.5:
        why = f"turning answers round brings {max(zero, one):g} down; it is for rates of at most 0.5"
        return [("method.flip_probability", why)]
    return []


def _learners(settings: FeedSettings) -> list[tuple[str, str]]:
    method = settings.method
    if method.learner == "hedge" and method.learning_rate is None:
        return [("method.learner", "hedge needs method.learning_rate, any-time-hedge finds its own")]
    return [
        (f"method.{name}", f"{method.learner} has none to set; {' and '.join(learners)} {verb}")
        for name, learners, verb in (
            ("learning_rate", ("hedge", "fixed-share"), "have"),
            ("share", ("fixed-share",), "has"),
            ("committee", ("top-committee",), "has"),
        )
        if name in changed_settings(method) and method.learner not in learners
    ]


def _presets(settings: FeedSettings) -> list[tuple[str, str]]:
    if settings.preset != "paper":
        return []
    why = "the preset paper is what the paper says; leave {} out, or set preset to robust"
    faults = [("method", why.format("method"))] if settings.method != BUILT_IN else []
    if settings.loss != "squared":
        faults.append(("loss", why.format("loss")))
    if settings.vote_rule == "own-median":
        faults.append(("vote_rule", "the preset paper takes votes at one half; set vote_rule to half"))
    return faults
