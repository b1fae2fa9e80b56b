"""``clusterd rules replay CRAWL.tsv``: what the rules would have saved of a recorded crawl, without the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from clusterd_crawler.errors import WrongInput

from clusterd.cli.invocation import Invocation
from clusterd.cli.parameters import Place, Share

if TYPE_CHECKING:
    from clusterd_crawler.rules import Identity

REPLAY_COLUMNS: Final = (
    *("pages", "fetched", "skipped", "reduction", "skip_precision", "lost_contents", "rules", "urls_per_second"),
)
SPLIT_COLUMNS: Final = (
    *("precision", "rules", "reduction", "average_reduction_10", "average_reduction_100", "average_reduction_1000"),
    "possible_reduction",
)


@click.command("replay")
@click.argument("crawl", metavar="CRAWL…", type=Place(), nargs=-1, required=True)
@click.option("--order", type=click.Choice(["file", "random"]), default="file", show_default=True, help="Of the pages.")
@click.option("--seed", metavar="N", type=int, default=0, show_default=True, help="Of the random order, of the split.")
@click.option("--explore", metavar="SHARE", type=Share(), help="Would-be skips fetched all the same.")
@click.option("--policy", type=click.Choice(["identical", "near"]), default="identical", show_default=True)
@click.option("--split", metavar="SHARE", type=Share(min_open=True, max_open=True), help="Learn on it.")
@click.pass_obj
def replay_crawls(
    invocation: Invocation,
    crawl: tuple[str, ...],
    order: Literal["file", "random"],
    seed: int,
    explore: float | None,
    policy: Identity,
    split: float | None,
) -> None:
    """Run recorded crawls (tab-separated: url, content, …) through the learner and the crawler's decision.

    With --split the protocol of Koppula et al., section 5: learn on that share of the clusters, test on the rest.
    """
    if split is not None:
        from clusterd.learning.koppula.protocol import split_protocol
        from clusterd.learning.replay import read_crawl

        if explore is not None or order != "file":
            raise WrongInput("rules replay: --order and --explore go without --split, which fetches nothing")
        rows = [row for path in crawl for row in read_crawl(path)]
        invocation.show(split_protocol(rows, split=split, seed=seed, policy=policy), SPLIT_COLUMNS)
        return
    invocation.show(replayed(crawl, order, seed, explore, policy), (*(("crawl",) * (len(crawl) > 1)), *REPLAY_COLUMNS))


def replayed(
    crawls: Iterable[str],
    order: Literal["file", "random"],
    seed: int,
    explore: float | None,
    policy: Identity,
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each crawl, named where there are several."""
    from clusterd.learning.replay import EXPLORE, read_crawl, replay

    share = EXPLORE if explore is None else explore
    for path in crawls:
        figures = replay(read_crawl(path), order=order, seed=seed, explore=share, policy=policy)
        yield {"crawl": Path(path).name.removesuffix(".gz").removesuffix(".tsv"), **figures}
