"""Protections of one table side by side: the same intruder, and the same totals where possible.

The intruder knows the mechanism, which cells are small, and all true small counts but those of one
cycle of totals through the target; all counts are equally probable to them. Where exact totals are
published with the release they know these too. Then the released counts of all cells along the
cycle are evidence, because the totals tie their true counts to the target's. Without totals only
the released count of the target is evidence.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.intruder.comparing.suppressed import MOST, suppressed
from bayes_sdc.flows.intruder.measure import intruder_risk
from bayes_sdc.flows.intruder.probabilities.bayes import TINY, measures, posterior_of_counts
from bayes_sdc.flows.intruder.summarize import unique_cells
from bayes_sdc.flows.intruder.totals.cycles import log_weights, tables_along
from bayes_sdc.flows.intruder.totals.search import Cycles, widest_cycles
from bayes_sdc.flows.release.protections.alternatives import draw_release, random_rounding
from bayes_sdc.flows.release.protections.controlled_rounding import controlled_rounding
from bayes_sdc.flows.release.protections.noise import (
    cell_keys,
    geometric_noise,
    perturbation_table,
    perturbed,
)
from bayes_sdc.flows.release.protections.promised import CLAMPED, name_of, promised, public_shares
from bayes_sdc.flows.release.protections.suppression import proportional_fit
from bayes_sdc.flows.release.protections.swapping import swapped, swapping_likelihood
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.synthetic.synthesis import synthesize
from bayes_sdc.flows.release.totals.alternating_cycles import Graph
from bayes_sdc.flows.release.totals.kept import KeptTotals, kept_of
from bayes_sdc.flows.release.totals.margins import Margins
from bayes_sdc.flows.release.use.distinguishing import distinguished, known_of_cells
from bayes_sdc.flows.release.use.utility import GroundTruth, ground_truth, measure
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator, seed_or_fresh

SWAPS = 200  # swapped tables behind the probabilities of swapping
EPSILONS = (1.0, 0.5)
POWERS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)  # of evidence from cells that change together
MODEL, MODEL_KEPT = "model", "model, totals kept"


class Protected(NamedTuple):
    """A release of the small cells, and what the intruder makes of each cell."""

    method: str
    counts: np.ndarray  # (cell,) as published
    log_likelihood: np.ndarray  # (cell, candidate) of the released count of a cell
    totals: bool  # whether the release itself has the true totals
    given_cycle: bool = False  # whether the likelihood is that of all tables along the cycle
    together: bool = False  # whether cells change together, and are not separate evidence
    prior: np.ndarray | None = None  # (cell, candidate) where more is hidden than the small cells


@checked
def compare_protections(
    table: FlowTable,
    posterior: xr.DataTree,
    *,
    totals: str | KeptTotals = "origin,destination",
    seed: int | None = None,
) -> pd.DataFrame:
    """Compare protections of the same small cells by risk and utility, without and with totals.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    totals : str or KeptTotals
        Totals that are published with the release or kept by it, as for
        :func:`bayes_sdc.synthesize`.
    seed : int, optional
        Of all releases; by default a fresh one.

    Returns
    -------
    pandas.DataFrame
        One row per method and whether exact totals are published: ``method``, ``totals`` ("not
        published", "published beside", "kept"); risk: ``before`` and ``after``, mean probability of
        the true count before and after the release, ``r_all``, ``bits`` (mean log2 of after over
        before); utility: ``totals_error``, ``pmse_ratio`` with further functions of the count,
        ``shares`` (share of cells to move for the true shares of the counts) and ``unchanged``
        (share of cells with their true count).

    Raises
    ------
    InputError
        If the posterior belongs to another table, or no totals are named.

    See Also
    --------
    bayes_sdc.risk_utility, bayes_sdc.keep_totals

    Notes
    -----
    The methods: the model, with and without totals kept; random and controlled rounding to base 3
    and 5; with epsilon 1 and 0.5, geometric noise, clamped to the small counts and not, and
    Poisson-gamma and Dirichlet-multinomial synthesis
    (:mod:`bayes_sdc.flows.release.protections.prior_samples`); the cell-key method with D = 5, V =
    3 and no released 1 or 2, and with D = 3, V = 1; swapping of a tenth and a half of the movers;
    and suppression filled by iterative proportional fitting. Counts published beside exact totals
    do not add up to them unless totals are kept. Under controlled rounding and swapping cells
    change together, so those along a cycle are not separate evidence: the log-likelihood of the
    cycle is raised to the power, from 0 to 1, that serves the intruder best, which overstates the
    risk. How likely a cell is to be swapped is counted cell by cell. For the model with totals kept
    they use the released count of the target, whose distribution is known given each table of the
    cycle. Where further cells are hidden with the small ones (in tables of up to 20,000 small
    cells whose totals are at most a two-way table of all cells), all but those of one
    cycle of hidden cells are known, and the tables along it are left;
    the error of totals is that of small cells, because the totals of all hidden cells are exact.

    References
    ----------
    Duncan, Keller-McNulty and Stokes 2001, National Institute of Statistical Sciences, Technical
    Report 121.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import compare_protections, fit_flows, read_flows
    >>> frame = pd.DataFrame(
    ...     {"o": list("aabbcc"), "d": list("xyxyxy"), "n": [1, 4, 2, 5, 3, 2]}
    ... )
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> compared = compare_protections(table, posterior, seed=1)
    >>> kept = compared[compared["totals"] == "kept"].set_index("method")["totals_error"]
    >>> float(kept["model, totals kept"].round(9)), bool((compared["after"] <= 1).all())
    (0.0, True)
    """
    seed = seed_or_fresh(seed)
    kept = kept_of(table, totals)
    if not kept.sides or kept.base > 1:
        raise InputError(
            "totals: name at least one margin to keep exactly, such as origin,destination"
        )
    y = table.cells["y"].to_numpy(np.int64)
    prepared = kept.mixing(y)
    cycles = widest_cycles(generator(seed, "cycles of the intruder"), prepared.graph, y, table.k)
    truth, known = ground_truth(table), known_of_cells(table)
    even = {
        False: np.full((len(y), table.k + 1), 1.0 / (table.k + 1)),
        True: tables_along(np.ones(table.k + 1), y, cycles),
    }
    rows = []
    releases = [
        *_by_model(table, posterior, kept, seed),
        *_by_cell(table, prepared.margins, seed),
        *_with_promise(table, seed),
        *_with_totals(table, prepared.margins, prepared.graph, seed),
        *_suppressed_further(table, kept, seed),
    ]
    for one in releases:
        for published in (True,) if one.totals else (False, True):
            prior = even[published] if one.prior is None else one.prior
            rho = believed_counts(one, prior, y, cycles, published)
            rows.append(
                {
                    "method": one.method,
                    "totals": _words(one.totals, published),
                    **row_of(table, truth, known, one.counts, prior, rho),
                }
            )
    return pd.DataFrame(rows)


def row_of(
    table: FlowTable, truth: GroundTruth, known: np.ndarray, counts: np.ndarray, prior: np.ndarray,
    rho: np.ndarray,
) -> dict[str, float]:  # fmt: skip
    """Risk and utility of one release, as :func:`compare_protections` names them.

    Parameters
    ----------
    table, truth, known
        The table, its true counts, and what is known of its cells.
    counts : array of float, shape (cell,)
        As published.
    prior, rho : array of float, shape (cell, count)
        What the intruder thinks before and after.
    """
    y = table.cells["y"].to_numpy(np.int64)
    at = np.arange(len(y)), y
    score = distinguished(
        known, truth.counts, counts[np.newaxis], low=table.low, high=table.high
    )  # fmt: skip
    return {
        "before": float(prior[at].mean()),
        "after": float(rho[at].mean()),
        "r_all": measures(rho, y, unique_cells(table, "single-mover"))["r_all"],
        "bits": float(np.log2(np.maximum(rho[at], TINY) / prior[at]).mean()),
        "totals_error": measure(truth, counts[np.newaxis]).totals_error,
        "pmse_ratio": np.nan if score.every.ratio is None else score.every.ratio,
        "shares": _moved(truth.counts, counts),
        "unchanged": float((counts == truth.counts).mean()),
    }


def _words(kept: bool, published: bool) -> str:
    return "kept" if kept else "published beside" if published else "not published"


def believed_counts(
    one: Protected, prior: np.ndarray, y: np.ndarray, cycles: Cycles, published: bool
) -> np.ndarray:
    """Probability of each candidate, from the cell alone or from all along its cycle."""
    if not published:
        return posterior_of_counts(one.log_likelihood, prior)
    along = one.log_likelihood
    if not one.given_cycle:
        along = log_weights(along, y, cycles)
    # a cell that the totals tell has one candidate
    along = np.where(prior > 0.0, along, 0.0)
    found = [
        posterior_of_counts(power * along, prior) for power in (POWERS if one.together else (1.0,))
    ]
    at = np.arange(len(y)), y
    return max(found, key=lambda rho: float(np.log(np.maximum(rho[at], TINY)).mean()))


def _moved(true: np.ndarray, released: np.ndarray) -> float:
    """Share of cells to move for the true shares of the counts; fractions are rounded."""
    both = [np.rint(counts).astype(np.int64) for counts in (true, released)]
    length = 1 + max(int(counts.max()) for counts in both)
    shares = [np.bincount(np.maximum(counts, 0), minlength=length) / len(true) for counts in both]
    return float(np.abs(shares[0] - shares[1]).sum() / 2.0)


def _by_model(
    table: FlowTable, posterior: xr.DataTree, kept: KeptTotals, seed: int
) -> Iterator[Protected]:
    """One data set of the model, and one with totals kept."""
    for method, plan in ((MODEL, KeptTotals((), ())), (MODEL_KEPT, kept)):
        release = synthesize(table, posterior, totals=plan, seed=seed)
        risk = intruder_risk(table, posterior, release, totals=plan, seed=seed)
        counts = released_counts(table, release)[0]
        m = risk.release_probability.to_numpy()
        log_likelihood = np.log(np.maximum(m[np.arange(len(counts)), :, counts], TINY))
        kept_too = bool(plan.sides)
        yield Protected(method, counts + float(table.low), log_likelihood, kept_too, kept_too)


def _by_cell(table: FlowTable, margins: Margins, seed: int) -> Iterator[Protected]:
    """Rounding and noise."""
    low, high = table.low, table.high
    true = table.cells["y"].to_numpy(np.int64) + low
    mechanisms = {f"random rounding, base {b}": random_rounding(low, high, base=b) for b in (3, 5)}
    for epsilon in EPSILONS:
        name = f"geometric noise, epsilon {epsilon:g}"
        mechanisms[name] = geometric_noise(low, high, epsilon=epsilon)
    for method, m in mechanisms.items():
        places = draw_release(m, true, generator(seed, "protections", method))
        yield _protected(method, m, true, m["released"].to_numpy()[places])
    for base in (3, 5):
        method, m = f"controlled rounding, base {base}", mechanisms[f"random rounding, base {base}"]
        rng = generator(seed, "protections", method)
        counts = controlled_rounding(margins.left, margins.right, true, base=base, rng=rng)
        yield _protected(method, m, true, counts)._replace(together=True)
    for distance, variance, none in ((5, 3.0, 2), (3, 1.0, 0)):
        m = perturbation_table(high, distance=distance, variance=variance, none_up_to=none)
        m = m.sel(true=slice(low, high))
        places = perturbed(m, true, cell_keys(list(table.cells.index), f"{seed}"))
        rule = f", none from 1 to {none}" if none else ""
        method = f"cell key, D {distance}, V {variance:g}{rule}"
        yield _protected(method, m, true, m["released"].to_numpy()[places])


def _with_promise(table: FlowTable, seed: int) -> Iterator[Protected]:
    """Mechanisms whose epsilon is chosen beforehand; clamped noise is among those by cell."""
    for epsilon in EPSILONS:
        for one in promised(table, epsilon=epsilon, shares=public_shares(table), seed=seed):
            if one.method != CLAMPED:
                name = name_of(one.method, epsilon, one.delta)
                yield Protected(name, one.counts, one.log_likelihood, totals=False)


def _with_totals(
    table: FlowTable, margins: Margins, graph: Graph, seed: int
) -> Iterator[Protected]:
    """Methods that have the true totals: swapping, and suppression filled from them."""
    y, low = table.cells["y"].to_numpy(np.int64), table.low
    for rate in (0.1, 0.5):
        method = f"swapping of {rate:.0%} of the movers"
        rng = generator(seed, "protections", method)
        counts = swapped(graph, y, table.k, rate=rate, rng=rng)
        likelihood = swapping_likelihood(
            graph, y, counts, table.k, rate=rate, repetitions=SWAPS, rng=rng
        )
        yield Protected(method, counts + float(low), likelihood, totals=True, together=True)
    ends = margins.left, margins.right
    sums = [np.bincount(of, y + low).astype(float) for of in ends]
    filled = proportional_fit(*ends, *sums)
    nothing = np.zeros((len(y), table.k + 1))  # it follows from the totals
    yield Protected("suppression, proportional fitting", filled, nothing, totals=True)


def _suppressed_further(table: FlowTable, kept: KeptTotals, seed: int) -> Iterator[Protected]:
    """Small cells and further ones hidden, until totals tell as little as possible."""
    if table.n_small > MOST or len(kept.merged):
        return
    found = suppressed(table, kept, rng=generator(seed, "protections", "further cells hidden"))
    if found is None:
        return
    name = f"suppression of {found.further:,} further cells ({found.movers:,} movers) too, fitted"
    nothing = np.zeros(found.prior.shape)  # it follows from the totals
    yield Protected(name, found.filled, nothing, totals=True, given_cycle=True, prior=found.prior)


def _protected(method: str, m: xr.DataArray, true: np.ndarray, counts: np.ndarray) -> Protected:
    place = np.searchsorted(m["released"].to_numpy(), counts)
    log_likelihood = np.log(np.maximum(m.to_numpy(), TINY)).T[place]
    return Protected(method, counts.astype(float), log_likelihood, totals=False)
