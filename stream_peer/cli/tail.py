"""``stream-peer tail FEED``: the newest weights, once or as they change."""

import sys
from collections.abc import Iterator

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stream_peer.cli.options import Invocation, settings_options
from stream_peer.events.outputs import MixedGroup, WeightedExpert, Weights, encode_output
from stream_peer.events.spelling import spelt
from stream_peer.serve.terminal import console
from stream_peer.settings.process import Settings
from stream_peer.tools.replay.history import by_mix, rounded


@click.command(name="tail")
@click.argument("feed")
@click.option("--once", is_flag=True, help="Print the newest weights as JSON and end.")
@click.option(
    "--experts",
    "shown",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Number of experts to show, by mix.",
)
@click.option("--group", metavar="GROUP", help="Watch the forecast of this question with options or thresholds.")
@settings_options()
def tail_command(invocation: Invocation, *, feed: str, once: bool, shown: int, group: str | None) -> None:
    """Watch the weights of FEED: a live table on a terminal, a line for each change elsewhere. Ctrl-C ends it.

    \b
    stream-peer tail econ --bootstrap kafka:9092
    stream-peer tail econ --once | jq '.experts | sort_by(-.mix)[:3]'
    stream-peer tail politics --group chair
    """  # noqa: D301
    if group is not None:
        _tail_group(invocation.settings, feed, group, once=once)
        return
    if once:
        click.echo(encode_output(_newest(invocation.settings, feed)))
        return
    follow = _follow_live if sys.stdout.isatty() else _follow_lines
    try:
        follow(invocation.settings, feed, shown)
    except KeyboardInterrupt:
        return


def weights_line(weights: Weights) -> str:
    """One line about the weights of a feed."""
    rate = weights.error_rate
    certificate = "-" if weights.certificate is None else f"{weights.certificate.regret_at_most:.1f}"
    leaders = ", ".join(f"{spelt(expert.id)} {expert.mix:.3f}" for expert in by_mix(weights)[:3])
    reasons = f" ({'; '.join(map(spelt, weights.status_reasons))})" if weights.status_reasons else ""
    return (
        f"{weights.at} revision {weights.revision} {weights.status}{reasons} "
        f"questions {rounded(weights.questions)} resolved {rounded(weights.resolved)} "
        f"error rate {(rate.zero + rate.one) / 2:.3f} [{rate.low:.3f}, {rate.high:.3f}] "
        f"regret at most {certificate} mix {leaders or '-'}"
    )


def weights_table(weights: Weights, shown: int) -> Table:
    """The experts with the most weight, with what speaks for them."""
    found = Table(title=None, expand=False)
    found.add_column("expert", no_wrap=True, max_width=40)
    for name in ("mix", "select", "questions", "coverage", "peer loss", "outcome loss", "resolved"):
        found.add_column(name, justify="right")
    experts = by_mix(weights)
    for expert in experts[:shown]:
        found.add_row(Text(spelt(expert.id)), *_cells(expert))
    if len(experts) > shown:
        found.add_row(Text(f"… {len(experts) - shown} more"), f"{sum(e.mix for e in experts[shown:]):.3f}")
    return found


def _cells(expert: WeightedExpert) -> Iterator[str]:
    yield f"{expert.mix:.3f}"
    yield f"{expert.select:.3f}"
    yield rounded(expert.questions)
    yield f"{expert.coverage:.0%}"
    yield "-" if expert.peer_loss is None else f"{expert.peer_loss:.3f}"
    yield "-" if expert.outcome_loss is None else f"{expert.outcome_loss:.3f}"
    yield rounded(expert.resolved)


def _newest(settings: Settings, feed: str) -> Weights:
    from stream_peer.serve.feed_records import read_newest

    found = read_newest(settings)
    if feed in found:
        return found[feed]
    there = ", ".join(sorted(found)) or "none yet"
    when = "weights come with a question's first round, which is due round_every after its opening or at its close"
    msg = f"no weights of feed {feed!r} so far; feeds that have some: {there} ({when})"
    raise click.BadParameter(msg, param_hint="FEED")


def _tail_group(settings: Settings, feed: str, group: str, *, once: bool) -> None:
    from stream_peer.serve.feed_records import follow_group, read_group

    if once:
        found = read_group(settings, group)
        if found is None or found.feed != feed:
            msg = f"nothing is published of a group {group!r} of feed {feed!r}: its first record comes with a round"
            raise click.BadParameter(msg, param_hint="--group")
        click.echo(encode_output(found))
        return
    try:
        for record in follow_group(settings, group):
            if record.feed == feed:
                click.echo(group_line(record))
    except KeyboardInterrupt:
        return


def group_line(record: MixedGroup) -> str:
    """One line about the forecast of a question with options or thresholds."""
    options = [(part, spelt(part.name)) for part in record.options or ()]
    cdf = [(part, f"at most {spelt(part.name)}") for part in record.cdf or ()]
    said = ", ".join(
        f"{name} {'-' if part.mix is None else f'{part.mix:.3f}'}{' (came true)' if part.outcome == 1 else ''}"
        for part, name in (*options, *cdf)
    )
    state = "final" if record.final else "open"
    return f"{record.at} revision {record.revision} {record.trust} {spelt(record.group)} {state} mix {said or '-'}"


def _follow_lines(settings: Settings, feed: str, shown: int) -> None:
    del shown
    from stream_peer.serve.feed_records import follow

    for weights in follow(settings, feed):
        click.echo(weights_line(weights))


def _follow_live(settings: Settings, feed: str, shown: int) -> None:
    from stream_peer.serve.feed_records import follow

    with Live(Text(f"Waiting for weights of {feed} …"), console=console(), auto_refresh=False) as live:
        for weights in follow(settings, feed):
            live.update(Group(Text(f"{feed}  {weights_line(weights)}"), weights_table(weights, shown)), refresh=True)
