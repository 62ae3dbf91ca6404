"""What an intruder learns about a small count from the release.

For a target cell t, the probability of each candidate count y given the released counts is
``rho_t^y`` proportional to ``P(y) * prod_l M_t[y, k_l]``, where ``M_t[y, k]`` is the probability
of releasing k when the true count is y and all other cells are known. Counts here are counted from
the lower bound, 0 to K.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binomtest

from bayes_sdc.errors import InputError
from bayes_sdc.flows import importance
from bayes_sdc.flows.layout import layout
from bayes_sdc.flows.risk import UNIQUE, IntruderRisk, Share
from bayes_sdc.flows.synthesis import (
    check_posterior,
    draw_counts,
    rates_by_draw,
    spread_draws,
    synthesize,
)
from bayes_sdc.flows.table import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator


def intruder_risk(
    table: FlowTable,
    posterior: xr.DataTree,
    release: pd.DataFrame,
    *,
    estimator: str = "paper",
    prior: str | Sequence[float] = "uniform",
    knowledge: str = "all-others",
    unique: str = "single-mover",
) -> IntruderRisk:
    """Measure what an intruder learns about each small count from the release.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior, from either sampler.
    release : pandas.DataFrame
        What :func:`bayes_sdc.flows.synthesis.synthesize` returned.
    estimator : {"paper"}
        Importance sampling from the fitted posterior, eq. (7) and (8).
    prior : "uniform" or sequence of float
        Intruder's prior over the counts ``low`` to ``high``, up to a factor.
    knowledge : {"all-others"}
        The intruder knows every small count but the target: the paper's worst case.
    unique : {"single-mover", "isolated"}
        Which cells R_unq counts: true count 1, or origin and destination in no other small cell.

    Returns
    -------
    IntruderRisk
        Probabilities for each cell and the summaries R_all, R_unq and d_t.

    Raises
    ------
    InputError
        If the release or the posterior belongs to another table, or an argument is unknown.

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
    _check_choice("estimator", estimator, ["paper"])
    _check_choice("knowledge", knowledge, ["all-others"])
    _check_choice("unique", unique, list(UNIQUE))
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so there is no risk to measure")
    check_posterior(table, posterior)
    released = released_counts(table, release)
    cells = layout(table)
    weights = _prior_weights(prior, cells.upper)
    rates = rates_by_draw(posterior)
    chains = posterior["posterior"].sizes["chain"]

    with Progress(len(cells.y), f"intruder risk of {len(cells.y)} cells") as progress:
        m, by_chain, khat = importance.release_probabilities(
            rates, cells, chains, released, advance=progress.advance
        )
    rho = importance.posterior_of_counts(importance.likelihood_of_release(m, released), weights)
    right = importance.best_guess(rho) == cells.y
    right_by_chain = [
        importance.best_guess(importance.posterior_of_counts(chain, weights)) == cells.y
        for chain in by_chain
    ]
    threshold = importance.khat_threshold(rates.n_draws)
    unreliable = (khat > threshold).any(axis=1)
    tied = weights == weights.max()
    baseline = np.where(tied[cells.y], 1.0 / tied.sum(), 0.0)

    counts = np.arange(table.low, table.high + 1)
    labels = {"cell": cells.cells}
    at_true = rho[np.arange(len(rho)), cells.y]
    guess = np.argmax(rho, axis=1)

    def share(among: str, chosen: np.ndarray) -> Share:
        return Share(
            f"cells whose single most probable count is the true one, among {among}",
            int(chosen.sum()),
            trusted=bool(unreliable[chosen].mean() <= 0.01) if chosen.any() else True,
            **_estimate(right[chosen], [r[chosen] for r in right_by_chain], baseline[chosen]),
        )

    return IntruderRisk(
        rho=xr.DataArray(rho, {**labels, "count": counts}, ("cell", "count"), "rho"),
        release_probability=xr.DataArray(
            m,
            {**labels, "true": counts, "released": counts},
            ("cell", "true", "released"),
            "release_probability",
        ),
        khat=xr.DataArray(khat, {**labels, "count": counts}, ("cell", "count"), "khat"),
        khat_threshold=threshold,
        r_all=share("small cells", np.ones(len(right), dtype=bool)),
        r_unq=share(UNIQUE[unique], _unique_cells(table, unique)),
        distance=xr.DataArray(np.abs(guess - cells.y), labels, ("cell",), "distance"),
        true_count_probability=xr.DataArray(at_true, labels, ("cell",), "true_count_probability"),
        believes_release=float((released[0] == cells.y).mean()),
        prior=prior if isinstance(prior, str) else "given",
        knowledge=knowledge,
        estimator=estimator,
        datasets=len(released),
        unique=unique,
    )


def repeat_risk(
    table: FlowTable,
    posterior: xr.DataTree,
    *,
    releases: int = 20,
    datasets: int = 1,
    prior: str | Sequence[float] = "uniform",
    unique: str = "single-mover",
    risk: IntruderRisk | None = None,
    seed: int,
) -> pd.DataFrame:
    """Intruder risk over independent releases: how much the luck of one release matters.

    Parameters
    ----------
    table, posterior, prior, unique
        As for :func:`intruder_risk`, with the estimator "paper" and knowledge "all-others".
    releases : int
        Number of independent releases, each of ``datasets`` data sets.
    datasets : int
        Number m of data sets in each release.
    risk : IntruderRisk, optional
        Of any release of this table and posterior: its release probabilities serve all others.
    seed : int
        Seed of the releases.

    Returns
    -------
    pandas.DataFrame
        One row a release: r_all, r_unq (missing where undefined), mean_distance and
        true_count_probability (mean over cells).

    Raises
    ------
    InputError
        As for :func:`intruder_risk`.

    References
    ----------
    Hawala, Reiter and Wang, section 2, last paragraph.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows, repeat_risk
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> repeat_risk(table, posterior, releases=5, seed=2).shape
    (5, 4)
    """
    _check_choice("unique", unique, list(UNIQUE))
    check_posterior(table, posterior)
    cells = layout(table)
    weights = _prior_weights(prior, cells.upper)
    rates = rates_by_draw(posterior)
    chosen = _unique_cells(table, unique)
    rng = generator(seed, "repeated releases")
    released = np.stack(
        [
            [
                draw_counts(cells, rates, int(draw), rng)
                for draw in spread_draws(rng, rates.n_draws, datasets)
            ]
            for _ in range(releases)
        ]
    )
    if risk is None:
        # M does not depend on what is released: any release of this posterior gives it
        risk = intruder_risk(
            table, posterior, synthesize(table, posterior, seed=seed), prior=prior, unique=unique
        )
    m = risk.release_probability.to_numpy()
    rows = []
    for release in released:
        rho = importance.posterior_of_counts(importance.likelihood_of_release(m, release), weights)
        right = importance.best_guess(rho) == cells.y
        rows.append(
            {
                "r_all": right.mean(),
                "r_unq": right[chosen].mean() if chosen.any() else np.nan,
                "mean_distance": np.abs(np.argmax(rho, axis=1) - cells.y).mean(),
                "true_count_probability": rho[np.arange(len(rho)), cells.y].mean(),
            }
        )
    return pd.DataFrame(rows, index=pd.RangeIndex(1, releases + 1, name="release"))


def released_counts(table: FlowTable, release: pd.DataFrame) -> np.ndarray:
    """Released counts of the small cells, from 0: (dataset, cell); rows may be in any order."""
    keys = [table.origin, table.destination, *table.groups]
    if "dataset" in release.columns and "dataset" not in table.frame.columns:
        frames = [frame for _, frame in release.groupby("dataset", sort=True)]
    else:
        frames = [release]
    rows = table.cells["row"].to_numpy()
    counts = []
    for frame in frames:
        missing = [name for name in [*keys, table.count] if name not in frame.columns]
        if missing:
            raise InputError(
                f"the release has no column {missing[0]!r}; it needs those of the input"
            )
        values = _in_order(table, frame, keys)[rows]
        # written so that a missing value, which compares as false, is refused too
        outside = ~((values >= table.low) & (values <= table.high) & (values % 1 == 0))
        if outside.any():
            cell = table.cells.index[int(np.argmax(outside))]
            raise InputError(
                f"the release has no count from {table.low} to {table.high} in small cell {cell}: "
                f"{values[np.argmax(outside)]}; it was not made from this table"
            )
        counts.append(values.astype(np.int64) - table.low)
    return np.stack(counts)


def _in_order(table: FlowTable, frame: pd.DataFrame, keys: list[str]) -> np.ndarray:
    """Counts of a released frame in the row order of the table."""
    if len(frame) != len(table.frame):
        raise InputError(
            f"the release has {len(frame)} rows and the table {len(table.frame)}; "
            "pass it as synthesize returned it"
        )
    ours, theirs = table.frame[keys].astype(str), frame[keys].astype(str)
    if (ours.to_numpy() == theirs.to_numpy()).all():
        return frame[table.count].to_numpy(np.float64)
    repeated = theirs.duplicated()
    if repeated.any():
        pair = theirs.loc[repeated.to_numpy()].iloc[0].tolist()
        raise InputError(f"the release has {pair} twice; pass it as synthesize returned it")
    matched = ours.merge(
        theirs.assign(**{"count of the release": frame[table.count].to_numpy(np.float64)}),
        on=keys,
        how="left",
        validate="one_to_one",
    )["count of the release"]
    if matched.isna().any():
        pair = ours.loc[matched.isna().to_numpy()].iloc[0].tolist()
        raise InputError(f"the release has no row for {pair}; it was not made from this table")
    return matched.to_numpy(np.float64)


def _estimate(
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


def _unique_cells(table: FlowTable, unique: str) -> np.ndarray:
    """Cells that R_unq is about."""
    cells = table.cells
    if unique == "single-mover":
        return (cells["y"] + table.low == 1).to_numpy()
    alone = [~cells[side].duplicated(keep=False).to_numpy() for side in ("origin", "destination")]
    return alone[0] & alone[1]


def _prior_weights(prior: str | Sequence[float], upper: int) -> np.ndarray:
    """Intruder's prior over 0..upper, summing to one."""
    if isinstance(prior, str):
        _check_choice("prior", prior, ["uniform"])
        return np.full(upper + 1, 1.0 / (upper + 1))
    weights = np.asarray(prior, dtype=np.float64)
    if (
        weights.shape != (upper + 1,)
        or not np.isfinite(weights).all()
        or (weights < 0).any()
        or weights.sum() <= 0
    ):
        raise InputError(
            f"prior: give {upper + 1} weights that are not negative and not all zero, one for "
            f"each count; got {prior!r}"
        )
    return np.asarray(weights / weights.sum())


def _check_choice(name: str, value: str, choices: list[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} {value!r} is unknown; choose from {choices}")
