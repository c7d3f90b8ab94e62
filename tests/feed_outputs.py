"""Outputs of feeds, as topics have them, for tests."""

import msgspec

from stream_peer.events.outputs import (
    ErrorRates,
    ErrorRateSummary,
    MixerShares,
    TruthRates,
    WeightedExpert,
    Weights,
    encode_output,
)


def weights(revision: int, *experts: str, feed: str = "econ") -> Weights:
    return Weights(
        feed=feed,
        revision=revision,
        at="2026-03-01T12:00:00Z",
        settings="9f3c",
        status="ok",
        status_reasons=[],
        questions=1,
        resolved=0,
        error_rate=ErrorRateSummary(zero=0.1, one=0.2, low=0.1, high=0.2, status="ok", measured=None),
        mixer=MixerShares(mean=1, peer=0, truth_slow=0, truth_fast=0),
        stretch=0,
        select_shrink=0.0,
        certificate=None,
        experts=[expert(name) for name in experts],
    )


def expert(name: str) -> WeightedExpert:
    return WeightedExpert(
        id=name, mix=0.5, select=0.5, questions=1, coverage=1, peer_loss=0.1, outcome_loss=None, resolved=0, team=None
    )


def part(whole: Weights, number: int, parts: int, *experts: str) -> bytes:
    return encode_output(msgspec.structs.replace(whole, part=number, parts=parts, experts=[expert(e) for e in experts]))


def rates_of(newest: Weights) -> ErrorRates:
    return ErrorRates(
        feed=newest.feed,
        settings=newest.settings,
        revision=newest.revision,
        at=newest.at,
        trust="ok",
        status="ok",
        status_reasons=[],
        zero=0.11,
        one=0.15,
        low=0.08,
        high=0.2,
        effective_questions=320.0,
        from_truth=TruthRates(zero=None, one=None, resolved=0.0),
        vote_rule="half",
    )
