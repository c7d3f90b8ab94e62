"""The series of a feed once more, slow and obvious: from its feed-log and from what was published, in floats.

Own reference answers, ties and mixed forecasts are taken from the records of questions; weights, shares of mixers and
what is only told from those of the feed. All else is computed anew: rounds by count, scores, error rates from votes and
outcomes, weights for following one expert and the certificate. Votes at 1/2, squared loss, no teams, one feed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from statistics import NormalDist
from typing import Any, get_args

import numpy as np

from stream_peer.events.feed_log import FeedLogRecord, OutcomeRevealed, Round, RoundWithdrawn
from stream_peer.events.outputs import ErrorRateStatus, TrustState
from tests.slow_rounds import COLUMNS, Asked, Floats, Price, Told, hedge

Key = tuple[str, ...]
Records = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By topic and key."""


class SlowGauges:
    """Takes what a feed was told and what was published of it; ``series`` are all that its owner has to show."""

    def __init__(self, feed: str, *, confidence: float = 0.95, subsample: Callable[[str], int]) -> None:
        self.feed, self.confidence, self.subsample = feed, confidence, subsample
        self.places: dict[str, int] = {}
        self.asked: dict[str, Asked] = {}
        self.applied = 0
        self.happened: Counter[tuple[str, str]] = Counter()
        self.records: dict[str, dict[str, dict[str, Any]]] = {}
        self._parts: dict[str, tuple[Floats, Counter[str]]] = {}
        self._columns, self._numbers = np.zeros((len(COLUMNS), 0)), Counter[str]()

    # --- what comes ---

    def take(self, event: FeedLogRecord, records: Records) -> None:
        """An event of the feed-log, and the newest record of each key that it had as a consequence."""
        if isinstance(event, Round | RoundWithdrawn | OutcomeRevealed):
            self._take_out(event.question_id)
            if isinstance(event, Round):
                self._round(event, records)
            elif isinstance(event, RoundWithdrawn):
                self.asked.get(event.question_id, Asked()).rounds.pop(event.boundary, None)
            else:
                self._outcome(event)
            self._put_in(event.question_id)
        for topic, by_key in records.items():
            self.records.setdefault(topic, {}).update({key: dict(record) for key, record in by_key.items()})

    def begin(self) -> None:
        """Another owner has the feed."""
        self.happened.clear()

    def forget(self, memory: int) -> None:
        """Let questions count less the older they are, in buckets of an eighth of memory; nothing may come after."""
        size = -(-memory // 8)
        newest = (len(self.asked) - 1) // size
        for number, (question, asked) in enumerate(self.asked.items()):
            age = (newest - number // size) * size
            self._take_out(question)
            asked.weight *= (1.0 - 1.0 / memory) ** age if age <= 5 * memory else 0.0
            self._put_in(question)

    def _round(self, event: Round, records: Records) -> None:
        asked = self.asked.setdefault(event.question_id, Asked())
        experts = [self.places.setdefault(expert, len(self.places)) for expert in event.experts]
        weights = self.records.get("weights", {}).get(self.feed, {})
        learnt, price = self._learnt(experts), self.price()
        shrink = weights.get("select_shrink", 0.0)
        losses = records["peer-losses"][event.question_id]["experts"]
        answer, mixed = (records[topic][event.question_id] for topic in ("reference-answers", "mixed-forecasts"))
        p = np.array(event.probabilities)
        assert [(one["id"], one["probability"]) for one in losses] == list(zip(event.experts, p, strict=True))
        told = Told(
            experts=experts,
            p=p,
            own=np.array([one["reference_answer"] for one in losses], dtype=np.float64),
            tie=answer["tie"],
            published={name: mixed[name] for name in ("mix", "stretched")}
            | {"mean": float(p.mean()), "median": float(np.median(p))},
            price=price,
            learnt=learnt,
            select=(1.0 - shrink) * learnt + shrink / len(p),
        )
        asked.rounds[event.boundary], asked.weight = told, event.weight
        if event.after_outcome:
            asked.fix(None)
        elif event.final:
            asked.fix(told)
        self.happened["feed_rounds_total", "scored" if told.counts else "low-evidence"] += 1

    def _outcome(self, event: OutcomeRevealed) -> None:
        if event.outcome == "open" and event.question_id not in self.asked:
            return
        asked = self.asked.setdefault(event.question_id, Asked())
        if asked.evidence != event.outcome:
            kind = "annulled" if event.outcome == "annulled" else "revealed" if asked.evidence == "open" else "revised"
            self.happened["feed_outcomes_total", kind] += 1
            self.applied += 1
            asked.evidence = event.outcome
            if asked.outcome is not None:
                asked.fix(asked.rounds[max(asked.rounds)] if asked.rounds else None)
            if kind == "revealed" and asked.evaluated is not None:
                tenth = min(math.floor(asked.evaluated.published["mix"] * 10), 9)
                self.happened["feed_scored_total", f"{tenth} {asked.outcome}"] += 1

    # --- sums ---

    def _take_out(self, question: str) -> None:
        columns, numbers = self._parts.pop(question, (None, Counter[str]()))
        self._numbers.subtract(numbers)
        if columns is not None:
            self._columns[:, : columns.shape[1]] -= columns

    def _put_in(self, question: str) -> None:
        asked = self.asked.get(question, Asked())
        if asked.is_in:
            columns, numbers = self._parts[question] = asked.columns(len(self.places)), asked.of_feed()
            self._numbers.update(numbers)
            self._columns = self._grown() + columns

    def columns(self) -> dict[str, Floats]:
        """Sums of the experts."""
        return dict(zip(COLUMNS, self._grown(), strict=True))

    def _grown(self) -> Floats:
        """With room for all experts."""
        return np.pad(self._columns, ((0, 0), (0, len(self.places) - self._columns.shape[1])))

    def _learnt(self, experts: list[int]) -> Floats:
        columns, price = self.columns(), self.price()
        widest = 1.0 + abs(price.zero - price.one)
        regret = price.unit(np.array([columns[f"learnt {k}"] for k in "y10"])) + price.distance * columns["rH"]
        return hedge(regret[experts] / widest, (columns["A"] + columns["AH"])[experts] / widest)

    def price(self) -> Price:
        """From votes and outcomes."""
        zero, one, *_ = self.rates(self._numbers, self.confidence)
        scale = min(0.8 / (zero + one), 1.0) if zero + one else 1.0
        return Price(zero * scale, one * scale)

    @staticmethod
    def rates(sums: Mapping[str, float], confidence: float) -> tuple[float, float, float, float]:
        """Both error rates, and the interval of their mean: leave-one-out moments, with outcomes for each class."""
        z, base, pseudo = NormalDist().inv_cdf(0.5 + confidence / 2.0), sums["counted"] + 20.0, 0.5 * math.sqrt(0.1)
        pair, rest = (sums["pair"] + 2.0) / base, (sums["rest"] + 20.0 * pseudo) / base
        a = rest / math.sqrt(pair) if pair > 0.0 else 0.0
        free = min(max((1.0 - a) / 2.0, 0.0), 0.475)
        low, high, variance = 0.0, 0.475, 0.25
        if a > 0.0:
            of_pair = ((sums["pair2"] + 20.0) / base - pair**2) / pair**2
            of_rest = ((sums["rest2"] + 20.0) / base - rest**2) / rest**2
            of_both = ((sums["pair rest"] + 2.0 * pseudo) / base - pair * rest) / (pair * rest)
            log_variance = max(of_rest + of_pair / 4.0 - of_both, 0.0) * (sums["weight2"] + 20.0) / base**2
            variance = min(a * a * log_variance / 4.0, 0.25)
            if sums["counted"] > 0.0:
                factor = math.exp(min(z * math.sqrt(log_variance), 50.0))
                low = min(max((1.0 - a * factor) / 2.0 - 0.005, 0.0), free)
                high = max(min((1.0 - a / factor) / 2.0 + 0.005, 0.475), free)
        prior = max(free, 0.005) * (1.0 - max(free, 0.005))
        prior = min(prior / variance, 30.0) if variance else 30.0
        revealed = [sums[f"revealed {y}"] for y in (0, 1)]
        both = [min((sums[f"wrong {y}"] + prior * free) / (revealed[y] + prior), 0.475) for y in (0, 1)]
        share = sum(prior / (known + prior) for known in revealed) / 2.0
        noise = sum(r * (1.0 - r) * known / (known + prior) ** 2 for r, known in zip(both, revealed, strict=True))
        mean, error = sum(both) / 2.0, z * math.sqrt(noise) / 2.0
        down, up = math.hypot(share * (free - low), error), math.hypot(share * (high - free), error)
        return both[0], both[1], max(mean - down, 0.0), min(mean + up, 0.475)

    # --- what is read ---

    def series(self, shown: Iterable[str]) -> dict[tuple[str, Key], float]:
        """Names and labels, but for the feed's, with their values; ``shown``: the experts with series of their own."""
        weights, rates = (self.records[topic][self.feed] for topic in ("weights", "error-rates"))
        columns, sums = self.columns(), self._numbers
        assert rates["vote_rule"] == "half"
        found: dict[tuple[str, Key], float | None] = {}
        for part in (self._experts(weights, columns, sums, set(shown)), self._rates(weights, rates, sums)):
            found |= part
        found |= self._bounds(weights, columns, sums) | self._scores(columns, sums) | self._told(weights, sums)
        for name, kinds in (
            ("feed_rounds_total", ("scored", "low-evidence")),
            ("feed_outcomes_total", ("revealed", "revised", "annulled")),
        ):
            found |= {(name, (kind,)): float(self.happened[name, kind]) for kind in kinds}
        for k in range(10):
            forecast = f"0.{k}-{'1.0' if k == 9 else f'0.{k + 1}'}"
            for y in "01":
                found["feed_scored_total", (forecast, y)] = float(self.happened["feed_scored_total", f"{k} {y}"])
        return {key: value for key, value in found.items() if value is not None}

    def _experts(
        self, weights: Mapping[str, Any], columns: Mapping[str, Floats], sums: Mapping[str, float], shown: set[str]
    ) -> dict[tuple[str, Key], float | None]:
        found: dict[tuple[str, Key], float | None] = {}
        answered = columns["n"] + columns["m"]
        listed = {one["id"]: one for one in weights["experts"]}
        assert set(listed) == {name for name, place in self.places.items() if answered[place] > 0.0}
        for name in shown:
            share = float(answered[self.places[name]]) / sums["questions"]
            found["expert_coverage_ratio", (name,)] = share
            found["expert_peer_loss", (name,)] = listed[name]["peer_loss"]
            known = float(columns["m"][self.places[name]])
            found["expert_outcome_loss", (name,)] = columns["H"][self.places[name]] / known if known > 0.0 else None
        for kind in ("mix", "select"):
            found |= {("expert_weight", (name, kind)): listed[name][kind] for name in shown}
            if len(shown) < len(listed):
                rest = math.fsum(one[kind] for name, one in listed.items() if name not in shown)
                found["expert_weight", ("other", kind)] = rest
        mix = np.array([one["mix"] for one in listed.values()])
        found["effective_experts", ()] = 1.0 / float((mix**2).sum()) if len(mix) else 0.0
        return found

    def _rates(
        self, weights: Mapping[str, Any], rates: Mapping[str, Any], sums: Mapping[str, float]
    ) -> dict[tuple[str, Key], float | None]:
        zero, one, low, high = self.rates(sums, self.confidence)
        known = sums["revealed 0"] + sums["revealed 1"]
        measured = (sums["wrong 0"] + sums["wrong 1"]) / known if known else None
        effective = sums["counted"] ** 2 / sums["weight2"] if sums["weight2"] else 0.0
        found: dict[tuple[str, Key], float | None] = {
            ("reference_error_ratio", ("zero",)): zero,
            ("reference_error_ratio", ("one",)): one,
            ("reference_error_low_ratio", ()): low,
            ("reference_error_high_ratio", ()): high,
            ("reference_error_measured_ratio", ()): measured,
            ("reference_error_effective_questions", ()): effective,
        }
        found |= {("reference_error_status", (s,)): float(s == rates["status"]) for s in get_args(ErrorRateStatus)}
        assert weights["status"] == rates["trust"]
        return found | {("trust_state", (s,)): float(s == rates["trust"]) for s in get_args(TrustState)}

    def _bounds(
        self, weights: Mapping[str, Any], columns: Mapping[str, Floats], sums: Mapping[str, float]
    ) -> dict[tuple[str, Key], float | None]:
        """The certificate, its terms, and the regret that it bounds, over the experts listed."""
        said = weights["certificate"]
        terms = self.certificate(columns, sums) if weights["status"] in ("ok", "warming-up") else None
        assert (said is None) == (terms is None)
        found: dict[tuple[str, Key], float | None] = {}
        if terms is not None:
            found = {("certificate_term", (name,)): value for name, value in terms.items()}
            found["certificate_regret", ()] = said["regret_at_most"]
            assert abs(math.fsum(terms.values()) - said["regret_at_most"]) < 1e-6
        listed = columns["n"] + columns["m"] > 0.0
        price = self.price()
        regret = price.unit(np.array([columns[f"published {k}"] for k in "y10"])) / price.distance + columns["T"]
        found["select_regret", ()] = float(regret[listed].max()) if listed.any() else None
        return found

    def certificate(self, columns: Mapping[str, Floats], sums: Mapping[str, float]) -> dict[str, float] | None:
        """The terms of the largest bound over experts and rates of the interval; None where the rates allow none."""
        delta = (1.0 - self.confidence) / ((1 + self.applied) * (2 + self.applied))
        zero, one, low, high = self.rates(sums, 1.0 - 0.2 * delta)
        half = (zero - one) / 2.0
        means = [low, *([abs(half)] if low < abs(half) < high else []), high]
        ends = [Price(m + gap, m - gap) for m in means for gap in [min(max(half, -m), m)]]
        if min(price.distance for price in ends) < 0.2:
            return None
        widened = columns["V"] + 25.0
        noise = np.sqrt(widened * (2.0 * math.log(len(self.places) / (0.8 * delta)) + np.log(widened / 25.0)))
        parts = np.array([columns[f"published {k}"] for k in "y10"])
        bounds = [(price.unit(parts) / price.distance, noise / price.distance, columns["T"]) for price in ends]
        unlisted = np.where(columns["n"] + columns["m"] > 0.0, 0.0, -np.inf)
        end, place = np.unravel_index(
            int(np.argmax([sum(bound) + unlisted for bound in bounds])), (len(ends), len(noise))
        )
        return {
            name: float(term[place]) for name, term in zip(("estimate", "noise", "outcomes"), bounds[end], strict=True)
        }

    def _scores(self, columns: Mapping[str, Floats], sums: Mapping[str, float]) -> dict[tuple[str, Key], float | None]:
        found: dict[tuple[str, Key], float | None] = {}
        if sums["evaluated"]:
            found = {("brier", (s,)): sums[s] / sums["evaluated"] for s in ("mix", "stretched", "mean", "median")}
        m = columns["evaluated"]
        enough = m >= max(10.0, 0.5 * sums["evaluated"]) - 1e-9
        best = float((columns["evaluated H"][enough] / m[enough]).min()) if enough.any() else None
        found["brier", ("best-expert",)] = best
        judged = columns["judged"] >= 20.0 - 1e-6
        found["loss_rank_correlation", ()] = None
        if judged.sum() >= 8:
            count = columns["judged"][judged]
            one, other = (ranks(np.round(columns[f"judged {k}"][judged] / count, 9)) for k in ("peer", "true"))
            found["loss_rank_correlation", ()] = float(np.corrcoef(one, other)[0, 1])
        return found

    def _told(self, weights: Mapping[str, Any], sums: Mapping[str, float]) -> dict[tuple[str, Key], float | None]:
        drift = weights.get("drift") or {"n_experts": 0.0, "error_rate": None}
        groups = {expert for group in weights.get("groups", ()) for expert in group["experts"]}
        counted, asked = sums["counted"], sums["asked"]
        found: dict[tuple[str, Key], float | None] = {
            ("tie_ratio", ()): sums["tied"] / counted if counted else None,
            ("low_evidence_ratio", ()): 1.0 - counted / asked if asked else None,
            ("mean_voters", ()): sums["voters"] / asked if asked else None,
            ("feed_questions", ()): sums["questions"],
            ("feed_resolved_questions", ()): sums["resolved"],
            ("select_shrink_ratio", ()): weights["select_shrink"],
            ("trust_acknowledged", ()): 0.0,
            ("dependence_z", ()): self.dependence(),
            ("error_rate_drift_z", ()): drift["error_rate"]["z"] if drift["error_rate"] else 0.0,
            ("drifting_experts", ()): drift["n_experts"],
            ("grouped_experts", ()): float(len(groups)),
        }
        return found | {("mixer_share_ratio", (name,)): share for name, share in weights["mixer"].items()}

    def dependence(self) -> float | None:
        """How far the fourth moment of the votes is from what the others make it, over its jackknife's deviation."""
        subsamples = np.zeros((25, 6))
        for name, asked in self.asked.items():
            four = [t for t in asked.rounds.values() if t.voters >= 4] if asked.is_in else []
            if four:
                moments = np.mean([moments_of(int((t.votes > 0).sum()), t.voters) for t in four], axis=0)
                amount = asked.weight * len(four) / len(asked.rounds)
                subsamples[self.subsample(name)] += (amount, amount**2, *(amount * moments))
        total = subsamples.sum(axis=0)
        if not total[1] or total[0] ** 2 / total[1] < 50.0:
            return None
        left = [gap_of(total - one) for one in subsamples if one[0] > 0.0]
        deviation = math.sqrt((len(left) - 1) / len(left) * float(((np.array(left) - np.mean(left)) ** 2).sum()))
        return gap_of(total) / deviation


def ranks(values: Floats) -> Floats:
    """Equal ones share the mean of theirs."""
    return np.array([(values < value).sum() + ((values == value).sum() - 1) / 2.0 for value in values])


def moments_of(yes: int, voters: int) -> list[float]:
    """Shares of single votes, pairs, triples and fours that are all yes."""
    return [math.comb(yes, k) / math.comb(voters, k) for k in (1, 2, 3, 4)]


def gap_of(sums: Floats) -> float:
    one, two, three, four = sums[2:] / sums[0]
    b = (three - one * two) / (two - one**2)
    return float(four - (b * three - (b * one - two) * two))
