"""``stream-peer paper``: the paper's claims, re-run by simulation, and a page that shows what came out."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream_peer.cli.options import NamedPath, must_be_writable, write_text
from stream_peer.serve.terminal import ProgressBar, progress_bar

if TYPE_CHECKING:
    from stream_peer.lab.paper.results import Result, Size

_MISSED = 1


@click.command(name="paper")
@click.option(
    "--quick", is_flag=True, help="Fewer repetitions and shorter horizons, with wider bands: within a minute."
)
@click.option(
    "--out",
    type=NamedPath(file_okay=False, path_type=Path),
    default=Path("paper-report"),
    show_default=True,
    help="Directory for index.html and results.json; made if need be.",
)
@click.option(
    "--images",
    type=NamedPath(file_okay=False, path_type=Path),
    help="Write every figure here as well, as an SVG of its own.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=2020,
    show_default=True,
    help="Of all random numbers: equal seeds give equal reports.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=min(os.cpu_count() or 1, 2),
    show_default=True,
    help="Claims that are simulated at the same time; the numbers do not depend on it.",
)
@click.pass_context
def paper_command(
    context: click.Context, *, quick: bool, out: Path, images: Path | None, seed: int, processes: int
) -> None:
    """Re-run the claims of the paper behind this service, with the formulas that the service itself uses.

    Seven simulations: regret on peer losses is sub-linear, naive labels elect the wrong expert, noise costs a factor
    1/(1-2η), a measured error rate costs the same for any number of experts, error rates that differ between questions,
    how exact estimates of error rates are, and what the bounds are worth. Every number stands beside the figure that is
    expected of it and a band. Without --quick it takes up to a quarter of an hour.

    A number outside of its band is marked red in the page, and the exit code is 1. The page needs the extra `report`.

    \b
    stream-peer paper --quick
    stream-peer paper --out report/ --seed 7
    """  # noqa: D301
    from stream_peer.lab.paper.results import Size
    from stream_peer.serve.pages.parts import require_matplotlib

    require_matplotlib()
    for directory in filter(None, (out, images)):
        _make(directory)
    size = Size.QUICK if quick else Size.FULL
    with progress_bar("claims re-run") as progress:
        results = _results(size, seed, processes, progress)
    click.echo(claims_summary(results))
    click.echo(f"\nreport: {_write(out, results, size, seed)}")
    if images is not None:
        _write_images(images, results)
    if any(result.missed for result in results):
        context.exit(_MISSED)


def claims_summary(results: "list[Result]") -> str:
    """What to say of the claims at a terminal: a line each, and one for every number that missed its band."""
    from stream_peer.lab.paper.results import band_shown, shown

    lines = []
    for result in results:
        verdict = (
            f"{len(result.missed)} of {len(result.checks)} missed" if result.missed else f"{len(result.checks)} met"
        )
        lines.append(f"{result.number}  {result.title}: {verdict}")
        first = (result.missed or list(result.checks))[0]
        lines.append(f"   {result.finding}")
        if not result.missed:
            lines.append(f"   e.g. {first.what}: expected {first.expected}, measured {shown(first.measured)}")
        lines += [
            f"   MISSED {check.what}: measured {shown(check.measured)}, band {band_shown(check)} ({check.basis})"
            for check in result.missed
        ]
    missed = sum(len(result.missed) for result in results)
    total = sum(len(result.checks) for result in results)
    lines.append(f"\n{total - missed} of {total} numbers lie in their bands")
    return "\n".join(lines)


def _results(size: "Size", seed: int, processes: int, progress: ProgressBar | None) -> "list[Result]":
    from stream_peer.lab.paper.run import CLAIMS, rerun_all

    found: list[Result] = []
    for done in rerun_all(size, seed, processes):
        found.append(done.result)
        if progress is not None:
            progress(len(found), len(CLAIMS), f"claims re-run, {done.result.number} in {done.seconds:.0f} s")
    return sorted(found, key=lambda result: result.number)


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.FileError(str(out), error.strerror) from error
    must_be_writable(out)


def _write(out: Path, results: "list[Result]", size: "Size", seed: int) -> Path:
    from stream_peer.lab.paper.page import render
    from stream_peer.lab.paper.results import as_json

    page = out / "index.html"
    write_text(page, render(results, size=size, seed=seed))
    numbers = json.dumps(as_json(results, size=size, seed=seed), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(out / "results.json", numbers + "\n")
    return page


def _write_images(directory: Path, results: "list[Result]") -> None:
    from stream_peer.lab.paper.page import pictures

    for name, picture in pictures(results).items():
        write_text(directory / name, picture)
    click.echo(f"images: {directory}")
