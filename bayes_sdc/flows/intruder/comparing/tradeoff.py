"""Risk and utility of the model's release beside those of other protections of the same cells.

Every method meets the same intruder: they know the mechanism and which cells are small, expect
beforehand what the strongest intruder of the release does, and apply Bayes' rule. An intruder who
simply believes the released counts is not measured here.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.intruder.comparing.repeats import WORST
from bayes_sdc.flows.intruder.probabilities.bayes import (
    likelihood_of_release,
    measures,
    posterior_of_counts,
)
from bayes_sdc.flows.intruder.probabilities.prior import prior_of_cells
from bayes_sdc.flows.intruder.probabilities.settings import check_choice
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.summarize import unique_cells
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.protections.alternatives import (
    cell_key_noise,
    draw_release,
    poisson_synthesis,
    random_rounding,
    suppression_posterior,
)
from bayes_sdc.flows.release.synthetic.synthesis import draw_datasets
from bayes_sdc.flows.release.use.propensity import mean_score
from bayes_sdc.flows.release.use.utility import (
    GroundTruth,
    error_of_totals,
    ground_truth,
    in_right_band,
    scores,
)
from bayes_sdc.flows.table.cells import fitted_cells, impossible_of, under_rule
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator, seed_or_fresh

OURS = "model-based synthesis"
MECHANISMS = {
    "Poisson synthesis": poisson_synthesis,
    "cell-key noise": cell_key_noise,
    "random rounding": random_rounding,
}
METHODS = 1 + len(MECHANISMS)  # that are measured by number of data sets


@checked
def risk_utility(
    table: FlowTable,
    posterior: xr.DataTree,
    risk: IntruderRisk,
    *,
    datasets: Iterable[int] = range(1, 11),
    seed: int | None = None,
) -> pd.DataFrame:
    """Compare the model's release with other protections, by number of data sets.

    The methods are the model (with ``release_probability`` of ``risk``), saturated Poisson
    synthesis, noise of the cell-key style (at most 3 either way, variance 1), random rounding to
    base 5, and suppression with one row of other flows per origin. For utility the suppressed cells
    of an origin share its sum evenly.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    risk : IntruderRisk
        Of any release of this table and posterior.
    datasets : iterable of int
        Numbers m of data sets: the first m of those of the largest number, so rows of a method go
        together. Noise and rounding are repeated independently, as no agency should;
        suppression has one table, and one m.
    seed : int, optional
        Seed of all releases; a stream of its own for each method. By default a fresh one.

    Returns
    -------
    pandas.DataFrame
        One row per method, knowledge and m: ``method``, ``knowledge``, ``prior`` (its name),
        ``datasets``; risk: ``r_all`` and ``r_unq`` (share of small cells, and of the unique ones,
        whose single most probable count is the true one; missing where undefined),
        ``mean_distance`` (counts between the most probable and the true one) and
        ``true_count_probability`` (mean over cells); utility: ``totals_error``, ``pmse_ratio`` and
        ``right_band``, as in :class:`bayes_sdc.Utility`. ``knowledge`` is "all-others", or
        "margins" for an intruder who sees the sums by origin only. Suppression has a row for
        either: anyone who knows all other small cells learns the hidden one by subtraction.

    Raises
    ------
    InputError
        If posterior or risk belong to another table, or a number of data sets is not from 1 to the
        number of posterior draws.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.utility, bayes_sdc.plot_ru_map

    Notes
    -----
    The risk of suppression with "margins" is not comparable with the other rows, whose intruder
    knows all other small cells: it is what an intruder with far less knowledge finds. Sums by
    destination, where they are published too, tell them more.

    References
    ----------
    G. T. Duncan, S. A. Keller-McNulty, S. L. Stokes 2001, "Disclosure risk vs. data utility: the
    R-U confidentiality map", National Institute of Statistical Sciences, Technical Report 121.

    Examples
    --------
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, risk_utility, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> compared = risk_utility(table, posterior, risk, datasets=[1, 2], seed=3)
    >>> compared["method"].value_counts(sort=False).to_dict()  # doctest: +NORMALIZE_WHITESPACE
    {'model-based synthesis': 2, 'Poisson synthesis': 2, 'cell-key noise': 2,
     'random rounding': 2, 'suppression': 2}
    """
    seed = seed_or_fresh(seed)
    numbers = _numbers(datasets)
    truth = ground_truth(table)
    check_posterior(table, posterior)
    _check_risk(table, risk)
    table = under_rule(table, impossible_of(posterior.attrs))
    check_choice("knowledge of the risk to compare", risk.knowledge, WORST)
    unique = unique_cells(table, risk.unique)
    y = table.cells["y"].to_numpy()
    rows: list[dict[str, Any]] = []
    with Progress(METHODS * len(numbers), "other protections") as progress:
        for method, m, places in _releases(table, posterior, risk, numbers, seed):
            probability = np.broadcast_to(m.to_numpy(), (len(y), *m.shape[-2:]))
            known = risk.knowledge if method == OURS else "all-others"
            name, prior = _prior(table, risk, method)
            first = {"method": method, "knowledge": known, "prior": name}
            used = _utility(truth, m["released"].to_numpy()[places].astype(np.float64))
            likelihood = np.zeros((len(y), table.k + 1))
            found = {}
            for number in range(1, len(places) + 1):
                likelihood += likelihood_of_release(probability, places[number - 1 : number])
                if number in numbers:
                    rho = posterior_of_counts(likelihood, prior)
                    found[number] = {**measures(rho, y, unique), **used(number)}
                    progress.advance(numbers.count(number))
            rows += [{**first, "datasets": number, **found[number]} for number in numbers]
    return pd.DataFrame([*rows, *_suppression(table, truth, unique, risk)])


class _Method(NamedTuple):
    """A method, its M by cell or for all cells, and its data sets as positions in ``released``."""

    name: str
    m: xr.DataArray
    places: np.ndarray  # (dataset, cell)


def _releases(
    table: FlowTable,
    posterior: xr.DataTree,
    risk: IntruderRisk,
    numbers: list[int],
    seed: int,
) -> Iterator[_Method]:
    """Each method with as many data sets as any release has; a smaller one has the first."""
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    kept = None if risk.kept is None else risk.kept.mixing(cells.y)
    most = max(numbers)
    rng = generator(seed, "alternatives", OURS)
    ours = draw_datasets(cells, rates, most, rng, kept)
    yield _Method(OURS, risk.release_probability, ours)
    true = cells.y + table.low
    for name, mechanism in MECHANISMS.items():
        m, rng = mechanism(table.low, table.high), generator(seed, "alternatives", name)
        yield _Method(name, m, np.stack([draw_release(m, true, rng) for _ in range(most)]))


def _suppression(
    table: FlowTable, truth: GroundTruth, unique: np.ndarray, risk: IntruderRisk
) -> Iterator[dict[str, Any]]:
    y, origin = table.cells["y"].to_numpy(), truth.area["origin"]
    shared = (np.bincount(origin, truth.counts) / np.bincount(origin))[origin]
    seen = _utility(truth, shared[np.newaxis])(1)
    name, prior = _prior(table, risk, "suppression")
    known = {
        "margins": suppression_posterior(table, prior=prior).to_numpy(),
        "all-others": np.eye(table.k + 1)[y],
    }
    for knowledge, rho in known.items():
        first = {"method": "suppression", "knowledge": knowledge, "prior": name, "datasets": 1}
        yield {**first, **measures(rho, y, unique), **seen}


def _utility(truth: GroundTruth, released: np.ndarray) -> Callable[[int], dict[str, float]]:
    """Utility of the first so many data sets; what is of one alone is computed once."""
    of_each = scores(truth, released)
    in_band = in_right_band(truth, released).mean(axis=1)

    def of_first(number: int) -> dict[str, float]:
        ratio = mean_score(of_each[:number]).ratio
        error = released[:number].mean(axis=0) - truth.counts
        return {
            "totals_error": error_of_totals(truth, error),
            "pmse_ratio": np.nan if ratio is None else ratio,
            "right_band": float(in_band[:number].mean()),
        }

    return of_first


def _prior(table: FlowTable, risk: IntruderRisk, method: str) -> tuple[str, np.ndarray]:
    """Prior of the strongest intruder: its name, and (cell, count).

    Where the release keeps totals, they rule counts out and the prediction of the model uses them.
    Other methods keep none: there that intruder expects the shares of the counts.
    """
    name = risk.strongest.prior
    if risk.kept is not None and method != OURS and name == "model":
        name = "shape"
    expected = (
        risk.prior_probability.to_numpy()
        if name == "given"
        else prior_of_cells(name, table, risk.prediction.to_numpy())
    )
    if risk.kept is None or method != OURS:
        return name, expected
    possible = expected * (risk.prediction.to_numpy() > 0.0)
    return name, np.asarray(possible / possible.sum(axis=1, keepdims=True))


def _numbers(datasets: Iterable[int]) -> list[int]:
    numbers = list(datasets)
    wrong = [n for n in numbers if not isinstance(n, int | np.integer) or n < 1]
    if wrong or not numbers:
        raise InputError(
            "datasets must be whole numbers of 1 or more, such as range(1, 11); "
            + (f"one is {wrong[0]!r}" if wrong else "there is none")
        )
    return [int(n) for n in numbers]


def _check_risk(table: FlowTable, risk: IntruderRisk) -> None:
    m = risk.release_probability
    counts = np.arange(table.low, table.high + 1)
    same = list(m["cell"].to_numpy()) == list(table.cells.index)
    if not same or not np.array_equal(m["released"], counts):
        raise InputError(
            "the risk was measured on another table (its cells differ); "
            "pass intruder_risk of this table and posterior"
        )
