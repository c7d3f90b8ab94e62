"""Tables that other pages include: events, reasons of refusals, settings, alerts, routes, causes of a weight."""

import ast
import inspect
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec
import yaml

from stream_peer.events import incoming
from stream_peer.events.rejections import Reason
from stream_peer.feeds.columns import COLUMNS
from stream_peer.serve.http.routes import OPEN, ROUTES
from stream_peer.settings.feed.model import (
    DURATIONS,
    MEANING,
    FeedSettings,
    MethodSettings,
    MixerSettings,
    TrustSettings,
)
from stream_peer.settings.process import leaves
from stream_peer.settings.process.shown import shown_duration
from stream_peer.tools.explain.words import WORDS

DIRECTORY = "docs/generated"
ALERTS = "helm/stream-peer/rules/alerts.yaml"
RUNBOOK = "docs/runbook"

_EVENTS = get_args(incoming.Event)
INCOMING = (*_EVENTS[:2], incoming.GroupForecast, *_EVENTS[2:4], incoming.GroupResolution, *_EVENTS[4:])
FEED_SETTINGS = {
    "round_every": "time between two rounds of a question; doubles after every 8; `null`: the close alone makes one",
    "quorum": "a round as well at the first moment at which so many experts have a forecast",
    "grace": "how long after its boundary a round waits for late events",
    "max_open": "a question closes so long after it opened, if nothing closes it before",
    "history_for": "how long after the close forecasts are kept, so that a correction can be applied",
    "backdate_limit": "a forecast counts from its stated time, but from no earlier than this long before its arrival;"
    " null: no limit",
    "late_forecasts": "move: a forecast that is backdated too far, or of a resolved question, counts from a later time"
    " than stated; refuse: it becomes a dead letter",
    "forecast_for": "a forecast is valid for this long after its time; null: until the question closes",
    "skew": "how far ahead of its arrival an event may be dated and still move the clock; under defaults only",
    "horizon": "events dated further ahead are refused",
    "idle_after": "on a quiet partition, deadlines pass this long after they are due; null: only events move time",
    "history": "the feed's events lie in the past: sets backdate_limit and idle_after to null",
    "preset": "robust, or paper: two fixed groups, their error rate of the time for good, any-time exponential weights",
    "loss": "the loss of a forecast: squared, or log (in nats, of forecasts cut at .001 and .999); in replay spherical",
    "vote_rule": "half: a forecast above 1/2 votes yes; own-median: one above the median of the expert's own; auto:"
    " half, and own-median while nearly all votes at 1/2 are equal",
    "min_experts": "a round with fewer votes (a team has one) is published as low-evidence, and does not count without"
    " an outcome",
    "memory": "after this many further questions a question's weight is divided by e, after five times as many it is"
    " 0; null: all count equally. With a memory there is no certificate",
    "seed": "another seed gives other draws and random tie-breaks",
    "method_version": "which release's method is computed: 1, the default where none is stated, or 2, which `settings"
    " apply` writes",
    "method.reference": "majority; in replay weighted (by selection weights), mean, or product of odds too",
    "method.against": "others: each expert against the answer of all others; in replay everybody, group-a, other-group",
    "method.groups": "whether the groups are fixed, or redrawn for each round",
    "method.flip_probability": "share of reference answers that are flipped, as the paper proposes; it only adds noise",
    "method.error_rate": "moments (agreement with the others); in replay class-moments, two-groups, equal-groups,"
    " three-references, three-class-references, outcomes, known",
    "method.known_zero": "share of reference answers of 1 among outcomes of 0, for error_rate known",
    "method.known_one": "share of reference answers of 0 among outcomes of 1, for error_rate known",
    "method.learner": "ada-normal-hedge; in replay hedge, any-time-hedge, ada-hedge, fixed-share, follow-the-leader,"
    " top-committee",
    "method.learning_rate": "learning rate of hedge; for fixed-share it replaces the any-time rate",
    "method.share": "share that fixed-share distributes at each round",
    "method.committee": "size of top-committee",
    "method.pricing": "newest: regrets use the newest error rates; in replay frozen: those of the round's time",
    "method.mixer": "auto; in replay select (the selection weights), gradient-hedge, gradient-normal-hedge, outcomes,"
    " hybrid, or five: the last four and the mean, in shares that outcomes give them",
    "stretch": "whether mixed forecasts are also published stretched (extremized) away from 1/2, as far as outcomes"
    " justify",
    "guard": "whether a group of copies has one vote and one weight; off: only an alarm; auto: on from"
    " method_version 2 on; from version 2 of the method on followers have no weight",
    "confidence": "of intervals and of the certificate",
    "publish_every": "shortest time between two publications of changed weights; every snapshot publishes, too",
    "top_experts": "number of experts with a series of their own in the metrics",
    "shadows": "variants of the mixers that run beside them, to compare: at most 8, each with a `name` and, where it"
    " differs, `mixer` and `stretch`",
    "ledger_for": "how long after its last event a question without an outcome can be corrected, or get one",
    "retract_for": "how long after its last event a question with an outcome can be corrected",
    "ledger_max": "largest number of questions of a feed that can be corrected; those that expire first are dropped",
    "mixer.prior_mean": "share of the plain mean before any evidence",
    "mixer.prior_peer": "share of the mixer that learns from peer losses",
    "mixer.prior_truth_slow": "share of the mixer that learns slowly from outcomes",
    "mixer.prior_truth_fast": "share of the mixer that learns quickly from outcomes",
    "mixer.uniform_share": "how much of the peer mixer stays uniform",
    "mixer.peer_rate": "how steeply weights of the peer mixer follow the regret a question by reference answers",
    "mixer.truth_rate": "how steeply weights of the slow truth mixer follow the regret a question by outcomes",
    "mixer.nominal_error_rate": "error rate at which the peer mixer prices reference answers",
    "mixer.trust_prior": "whether trust multiplies `mixer.prior_peer` (by 2 in ok, a quarter in contradicted, 0 in"
    " uninformative) and lets peers stretch the mix until outcomes do; not under version 1 of the method",
    "trust.warm_up_questions": "effective questions before a feed's trust can be ok",
    "trust.acknowledged": "a state of trust whose alert is silent until the state changes",
    "trust.dependence_z": "standard deviations by which votes may depend on each other; above it trust is `dependent`",
    "trust.measured_error_rate": "share of wrong reference answers on resolved questions at which trust is"
    " `contradicted`",
    "trust.rank_correlation": "rank correlation of peer and true losses on resolved questions below which trust is"
    " `contradicted`",
}


def files(root: Path) -> dict[str, str]:
    """The tables: path in the repository and content."""
    tables = {
        "alerts": _alerts(root),
        "causes": _causes(),
        "columns": _columns(),
        "events": _events(),
        "reasons": _reasons(),
        "routes": _routes(),
        "feed-settings": _feed_settings(),
        "settings": _settings(),
    }
    return {f"{DIRECTORY}/{name}.md": text for name, text in tables.items()}


def _alerts(root: Path) -> str:
    """The alerts, the most severe first; what each means is the first sentence of its page."""
    groups = yaml.safe_load((root / ALERTS).read_text(encoding="utf-8"))["groups"]
    severities = ("critical", "warning", "info")
    alerts = sorted((rule for group in groups for rule in group["rules"]), key=lambda rule: rule["alert"])
    alerts.sort(key=lambda rule: severities.index(rule["labels"]["severity"]))
    rows = []
    for rule in alerts:
        name, severity = rule["alert"], rule["labels"]["severity"]
        page = (root / RUNBOOK / f"{name}.md").read_text(encoding="utf-8")
        meaning = " ".join(page.partition("\n")[2].partition("## Check")[0].split())
        rows.append((f"[{name}](../runbook/{name}.md)", severity, rule["for"], re.split(r"[.:](?: |$)", meaning)[0]))
    return table(("alert", "severity", "after", "meaning"), rows)


def _causes() -> str:
    return table(("cause", "in the text", "meaning"), [(f"`{name}`", *words[:2]) for name, words in WORDS.items()])


def _routes() -> str:
    """All routes but the probes, which have a table in Operations."""
    routes = [(f"`{route.path}`", route.about) for route in ROUTES if not route.path.startswith(OPEN)]
    return table(("path", "answer"), routes)


def _columns() -> str:
    """The columns of the sums; of many that are alike the first stands for all."""
    rows: dict[str, tuple[str, ...]] = {}
    for column in COLUMNS:
        alike = re.match("(votes|class|group|half)_", column.name)
        name = f"{alike[0]}…" if alike else column.name
        scope = f"{column.scope}, by rule" if column.by_rule else column.scope
        added = [text or "–" for text in (column.open, column.resolved)]
        note = "; ".join(filter(None, (f"version {column.version}" if column.version > 1 else "", column.doc)))
        rows.setdefault(f"{scope} {name}", (scope, f"`{name}`", *added, note))
    return table(("one for each", "column", "without outcome", "with outcome", "note"), list(rows.values()))


def _events() -> str:
    rows = []
    for kind in INCOMING:
        fields = [
            f"`{field.name}`" + ("\\*" if field.required else "")
            for field in msgspec.structs.fields(kind)
            if field.name != "schema"
        ]
        rows.append((f"`{kind.__struct_config__.tag}`", ", ".join(fields), first_sentence(kind.__doc__ or "")))
    return table(("type", "fields (\\* required)", "meaning"), rows)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, without its full stop."""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split()).replace("``", "`")
    return re.split(r"(?<=[^.A-Z])\. (?=[A-Z`])", paragraph)[0].rstrip(".")


def _reasons() -> str:
    return table(
        ("reason", "meaning"), [(f"`{name}`", said.replace("``", "`")) for name, said in _documented(Reason).items()]
    )


def _documented(kind: type[Reason]) -> dict[str, str]:
    """The members of an enumeration with the text that stands below each."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    members = [
        (ast.literal_eval(line.value), ast.literal_eval(below.value))
        for line, below in zip(body.body, body.body[1:], strict=False)
        if isinstance(line, ast.Assign) and isinstance(below, ast.Expr)
    ]
    return dict(members)


def _feed_settings() -> str:
    rows = []
    for path, (default, name) in _feed_defaults().items():
        shown = shown_duration(default) if name in DURATIONS and default is not None else json.dumps(default)
        rows.append(
            (f"`{path}`", f"`{shown}`", "meaning" if path.split(".")[0] in MEANING else "", FEED_SETTINGS[path])
        )
    return table(("setting", "default", "", "what it says"), rows)


_SECTIONS = ((FeedSettings, ""), (MethodSettings, "method."), (MixerSettings, "mixer."), (TrustSettings, "trust."))


def _feed_defaults() -> dict[str, tuple[Any, str]]:
    defaults: dict[str, tuple[Any, str]] = {}
    for kind, before in _SECTIONS:
        plain = msgspec.to_builtins(kind())
        defaults.update({before + name: (value, name) for name, value in plain.items()})
    return {
        path: found for path, found in defaults.items() if path not in {before.rstrip(".") for _, before in _SECTIONS}
    }


def _settings() -> str:
    rows = [
        (f"`{leaf.path}`", f"`{leaf.variable}`", f"`{json.dumps(leaf.default, default=str)}`", leaf.about)
        for leaf in leaves().values()
    ]
    return table(("setting", "environment", "default", "what it says"), rows)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
