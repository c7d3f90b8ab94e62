"""What the mix is made of."""

from stream_peer.serve.pages.parts import escape
from stream_peer.tools.report.cards.parts import FeedPage, bar

_MIXERS = {"mean": "plain mean", "peer": "peer losses", "truth_slow": "outcomes, slow", "truth_fast": "outcomes, fast"}
_ONLY = {
    "weights of the paper": "exponential weights on peer losses, as the preset paper says; outcomes move none of them",
    "selection weights": "the weights by which one expert is followed also make the mix",
    "gradient-hedge": "exponential weights on the gradient of the mixed forecast's own peer loss",
    "gradient-normal-hedge": "AdaNormalHedge on the gradient of the mixed forecast's own peer loss",
    "outcomes": "weights that learn from outcomes only",
    "hybrid": "weights that learn from outcomes where there are any, else from reference answers",
    "five": "these four mixers and the mean, in shares that outcomes give them",
}


def mixers_card(page: FeedPage) -> str:
    """Shares of the ways to weigh the experts, or the only one."""
    weights, variant = page.weights, page.variant
    only = _only_mixer(variant)
    if only:
        shares, text = [(only, 1.0)], f"One way to weigh the experts: {_ONLY.get(only, variant)}."
    else:
        shares = [(label, getattr(weights.mixer, name)) for name, label in _MIXERS.items()]
        text = "Shares of four ways to weigh the experts. Outcomes count as soon as there are any."
    bars = "".join(bar(label, share, share, ours=label != "plain mean") for label, share in shares)
    stretch = round(weights.stretch, 2) + 0.0
    return (
        f'<div class="card"><h3>Mixers of the mix</h3><p class="note">{escape(text)}</p>'
        f'<div class="bars" style="margin-top:18px">{bars}</div><p class="note" style="margin-top:18px">Stretch '
        f"{stretch:+.2f}: the stretched forecast lies {1 + stretch:.2f} times as far from one half "
        "as the mix.</p></div>"
    )


def _only_mixer(variant: str) -> str:
    """The name of the mixer that makes the mix alone, by what differed from the default; empty if there are several."""
    chosen = dict(part.partition("=")[::2] for part in variant.split(", "))
    if chosen.get("preset") == "paper":
        return "weights of the paper"
    mixer = chosen.get("method.mixer", "auto")
    return {"auto": "", "select": "selection weights"}.get(mixer, mixer)
