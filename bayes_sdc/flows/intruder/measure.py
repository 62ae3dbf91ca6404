"""What an intruder learns about a small count from the release.

For a target cell t, the probability of each candidate count y given the released counts is
``rho_t^y`` proportional to ``P(y) * prod_l M_t[y, k_l]``, where ``M_t[y, k]`` is the probability
of releasing k when the true count is y and the other cells are known. Counts here are counted from
the lower bound, 0 to K.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binomtest

from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.flows.intruder.bayes import (
    best_guess,
    likelihood_of_release,
    missed,
    posterior_of_counts,
)
from bayes_sdc.flows.intruder.estimators import ESTIMATORS, estimate
from bayes_sdc.flows.intruder.knowledge import KNOWLEDGE, backgrounds
from bayes_sdc.flows.intruder.prior import prior_of_cells
from bayes_sdc.flows.intruder.result import UNIQUE, IntruderRisk, Share
from bayes_sdc.flows.release.released import released_counts
from bayes_sdc.flows.release.synthesis import check_posterior
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator, seed_sequence

Prior = str | Sequence[float] | pd.Series | pd.DataFrame


def intruder_risk(
    table: FlowTable,
    posterior: xr.DataTree,
    release: pd.DataFrame,
    *,
    estimator: str = "integrated",
    prior: Prior = "uniform",
    knowledge: str = "all-others",
    share: float | None = None,
    unique: str = "single-mover",
    cells: int | Sequence[str] | None = None,
    refits: int = 0,
    seed: int | None = None,
    cores: int | None = None,
    resume: Path | None = None,
) -> IntruderRisk:
    """Measure what an intruder learns about each small count from the release.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior, from any sampler.
    release : pandas.DataFrame
        What :func:`bayes_sdc.synthesize` returned.
    estimator : {"integrated", "paper", "refit"}
        How M is computed: with both effects of the target integrated out of each posterior draw;
        by importance sampling from the fitted posterior, eq. (7) and (8), with smoothed weights;
        exactly, by refitting with every candidate count (seconds a cell).
    prior : "uniform", "model", sequence of float or DataFrame
        Intruder's prior over the counts ``low`` to ``high``, up to a factor: equal; what the model
        predicts of the cell from the others; one row of weights for all cells; or one row a cell
        (labelled as in ``table.cells``), one column a count.
    knowledge : {"all-others", "none", "share"}
        Which other small counts the intruder knows: all, the paper's worst case; none: each
        released data set stands in for them in turn, is fitted like the true table, and the
        results are averaged, the paper's approximation; or a random ``share`` of them, the rest
        being taken from the release.
    share : float, optional
        With knowledge "share": between 0 and 1.
    unique : {"single-mover", "isolated"}
        Which cells R_unq counts: true count 1, or origin and destination in no other small cell.
    cells : int or sequence of str, optional
        Measure only so many random cells, or those with these labels; by default all.
    refits : int
        Budget: so many of the cells that cannot be relied on (k-hat above the threshold, or Monte
        Carlo error of M above 0.01) are refitted, worst first, for each fit of the intruder.
    seed : int, optional
        Needed for refits, random cells, and knowledge other than "all-others".
    cores : int, optional
        Threads of fits and refits; by default all. No number depends on it.
    resume : Path, optional
        Folder that keeps what an interrupted call has done: a later one of the same posterior,
        release and arguments goes on from there. It holds confidential numbers.

    Returns
    -------
    IntruderRisk
        Probabilities for each cell and the summaries R_all, R_unq and d_t.

    Raises
    ------
    InputError
        If the release or the posterior belongs to another table, an argument is unknown, or a seed
        is needed and missing.

    References
    ----------
    Hawala, Reiter and Wang, eq. (3)-(11); k-hat: Vehtari, Simpson, Gelman, Yao and Gabry 2024,
    https://jmlr.org/papers/v25/19-556.html.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> risk.rho.sizes["count"], bool(abs(risk.rho.sum("count") - 1 < 1e-12).all())
    (9, True)
    """
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("knowledge", knowledge, KNOWLEDGE)
    check_choice("unique", unique, list(UNIQUE))
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so there is no risk to measure")
    if isinstance(refits, bool) or not isinstance(refits, int | np.integer) or refits < 0:
        raise InputError(f"refits must be a whole number, 0 or more; it is {refits!r}")
    threads(cores)  # refuses what is no number of them before the work
    random = knowledge != "all-others" or refits > 0 or estimator == "refit"
    if seed is not None:
        seed_sequence(seed)  # refuses a seed that is none before the work
    elif random or isinstance(cells, int | np.integer):
        raise InputError(
            "a seed is needed for refits, for random cells, and for knowledge other than "
            '"all-others"; pass seed='
        )
    check_posterior(table, posterior)
    released = released_counts(table, release)
    whole = small_cells(table)
    if not isinstance(prior, str) or prior != "model":
        prior_of_cells(prior, table, None)  # refuses what cannot be used before the work
    targets = _targets(whole.cells, cells, seed)
    steps = backgrounds(table, posterior, released, knowledge, share, seed, cores, resume)
    right_counts = whole.y[targets]
    rhos, rhos_by_chain, ms, predictions, khats, esses, errors = [], [], [], [], [], [], []
    priors, refitted = [], []
    with Progress(len(steps) * len(targets), f"intruder risk of {len(targets)} cells") as progress:
        for background in steps:
            fitted, y = background()
            found = estimate(
                fitted,
                whole._replace(y=y),
                released,
                targets,
                estimator=estimator,
                refits=refits,
                seed=seed,
                cores=cores,
                progress=progress,
                resume=resume,
            )
            weights = prior_of_cells(prior, table, found.prediction, targets)
            likelihood = likelihood_of_release(found.m, released[:, targets])
            rhos.append(posterior_of_counts(likelihood, weights))
            rhos_by_chain.append(
                np.stack([posterior_of_counts(one, weights) for one in found.by_chain])
            )
            ms.append(found.m)
            predictions.append(found.prediction)
            khats.append(found.khat)
            esses.append(found.ess)
            errors.append(found.error)
            refitted.append(found.refitted)
            priors.append(weights)
    rho = np.mean(rhos, axis=0)
    right = best_guess(rho) == right_counts
    by_chain = [best_guess(one) == right_counts for one in _mean(rhos_by_chain)]
    khat, error, threshold = np.max(khats, axis=0), np.max(errors, axis=0), found.threshold
    unreliable = missed(khat, threshold, error)
    mean_prior = np.mean(priors, axis=0)
    at = np.arange(len(targets)), right_counts
    tied = mean_prior >= mean_prior.max(axis=1, keepdims=True) * (1.0 - 1e-12)
    baseline = np.where(tied[at], 1.0 / tied.sum(axis=1), 0.0)

    believed = released[0, targets] == right_counts

    counts = np.arange(table.low, table.high + 1)
    labels = {"cell": [whole.cells[t] for t in targets]}
    guess = np.argmax(rho, axis=1)

    def share_of(among: str, chosen: np.ndarray) -> Share:
        return Share(
            f"cells whose single most probable count is the true one, among {among}",
            int(chosen.sum()),
            trusted=bool(unreliable[chosen].mean() <= 0.01) if chosen.any() else True,
            believes_release=float(believed[chosen].mean()) if chosen.any() else None,
            **_interval(right[chosen], [r[chosen] for r in by_chain], baseline[chosen]),
        )

    def by_count(values: np.ndarray, name: str) -> xr.DataArray:
        return xr.DataArray(values, {**labels, "count": counts}, ("cell", "count"), name)

    def by_cell(values: np.ndarray, name: str) -> xr.DataArray:
        return xr.DataArray(values, labels, ("cell",), name)

    return IntruderRisk(
        rho=by_count(rho, "rho"),
        release_probability=xr.DataArray(
            _mean(ms),
            {**labels, "true": counts, "released": counts},
            ("cell", "true", "released"),
            "release_probability",
        ),
        prior_probability=by_count(mean_prior, "prior_probability"),
        prediction=by_count(np.mean(predictions, axis=0), "prediction"),
        khat=by_count(khat, "khat"),
        ess=by_count(np.min(esses, axis=0), "ess"),
        release_probability_error=by_count(error, "release_probability_error").rename(count="true"),
        khat_threshold=threshold,
        refitted=by_cell(np.all(refitted, axis=0), "refitted"),
        refitted_by_fit=xr.DataArray(
            np.transpose(refitted),
            {**labels, "fit": np.arange(1, len(refitted) + 1)},
            ("cell", "fit"),
            "refitted_by_fit",
        ),
        r_all=share_of("small cells", np.ones(len(right), dtype=bool)),
        r_unq=share_of(UNIQUE[unique], unique_cells(table, unique)[targets]),
        distance=by_cell(np.abs(guess - right_counts), "distance"),
        true_count_probability=by_cell(rho[at], "true_count_probability"),
        believes_release=float(believed.mean()),
        prior=prior if isinstance(prior, str) else "given",
        knowledge=knowledge if share is None else f"share of {share:g}",
        estimator=estimator,
        datasets=len(released),
        unique=unique,
    )


def _mean(arrays: list[np.ndarray]) -> np.ndarray:
    """Mean over the backgrounds; of one there is no copy, for a nation's are large."""
    return arrays[0] if len(arrays) == 1 else np.asarray(np.mean(arrays, axis=0))


def _targets(labels: list[str], cells: int | Sequence[str] | None, seed: int | None) -> np.ndarray:
    """Positions of the cells to measure, ascending."""
    if cells is None:
        return np.arange(len(labels))
    if isinstance(cells, bool | str | float):
        raise InputError(f"cells must be a number or a list of labels; it is {cells!r}")
    if isinstance(cells, int | np.integer):
        if not 1 <= cells <= len(labels):
            raise InputError(f"cells must be from 1 to {len(labels)}, or labels; it is {cells}")
        rng = generator(seed or 0, "target cells")
        return np.sort(rng.choice(len(labels), cells, replace=False))
    positions = {label: position for position, label in enumerate(labels)}
    unknown = [label for label in cells if label not in positions]
    if unknown or not len(cells):
        named = f"no small cell {unknown[0]!r}" if unknown else "no cell is named"
        raise InputError(f"cells: {named}; the labels are those of table.cells")
    return np.unique([positions[label] for label in cells])


def _interval(
    right: np.ndarray, right_by_chain: list[np.ndarray], baseline: np.ndarray
) -> dict[str, Any]:
    """Share, Wilson's interval, Monte Carlo error and baseline; None where there is no cell."""
    n = len(right)
    if n == 0:
        return dict.fromkeys(["value", "interval", "monte_carlo_error", "baseline"])
    value = float(right.mean())
    interval = binomtest(int(right.sum()), n).proportion_ci(0.95, "wilson")
    chains = [r.mean() for r in right_by_chain]
    error = float(np.std(chains, ddof=1) / np.sqrt(len(chains))) if len(chains) > 1 else None
    return {
        "value": value,
        "interval": (float(interval.low), float(interval.high)),
        "monte_carlo_error": error,
        "baseline": float(baseline.mean()),
    }


def unique_cells(table: FlowTable, unique: str) -> np.ndarray:
    """Cells that R_unq is about: (cell,) of bool."""
    cells = table.cells
    if unique == "single-mover":
        return (cells["y"] + table.low == 1).to_numpy()
    alone = [~cells[side].duplicated(keep=False).to_numpy() for side in ("origin", "destination")]
    return alone[0] & alone[1]


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise InputError(f"{name} {value!r} is unknown; choose from {list(choices)}")
