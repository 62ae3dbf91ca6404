"""Weights from what each cell tells about itself: lower where a release would tell too much."""

import math

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.flows.intruder.measure import intruder_risk
from bayes_sdc.flows.intruder.probabilities.bayes import TINY
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.release.synthetic.synthesis import synthesize
from bayes_sdc.flows.table.cells import weights_of
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.weights import LOCAL
from bayes_sdc.seeds import seed_or_fresh

GAIN_LIMIT = 0.05  # bits of one data set, above which a cell is weighed down
MARGIN = 0.7  # of the limit is aimed at: a cell tells more once the others tell less


@checked
def risk_weights(
    table: FlowTable,
    posterior: xr.DataTree,
    *,
    limit: float = GAIN_LIMIT,
    seed: int | None = None,
    cores: int | None = None,
) -> pd.Series:
    """Weigh down the cells about which a release would tell more than a limit.

    Measured is the expected gain of a cell: how many bits one released data set adds, on average
    over what may be released, to the probability that an intruder gives to its true count. They
    know all other small counts and expect what the model predicts from these. The gain grows about
    with the square of the weight, so a cell whose gain g is above the limit gets 0.7 limit / g:
    rather too little, because its gain grows again when the cells beside it weigh less.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior. If that was fitted with weights, they are multiplied by the new ones.
    limit : float
        Bits, above 0.
    seed : int, optional
        By default a fresh one.
    cores : int, optional
        Threads; no number depends on it.

    Returns
    -------
    pandas.Series
        Weight of each small cell, from 0 to 1, labelled as in ``table.cells``. Confidential.

    Raises
    ------
    InputError
        If the posterior belongs to another table or the limit is not above 0.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.intruder_gain

    References
    ----------
    T. Savitsky, M. Williams, J. Hu, "Bayesian pseudo posterior mechanism under asymptotic
    differential privacy", arXiv:1909.11796.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows, risk_weights
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> weights = risk_weights(table, posterior, limit=0.001, seed=1)
    >>> bool(weights.between(0, 1).all()), bool((weights < 1).any())
    (True, True)
    """
    check_gain_limit(limit)
    seed = seed_or_fresh(seed)
    release = synthesize(table, posterior, seed=seed, cores=cores)
    risk = intruder_risk(table, posterior, release, seed=seed, cores=cores)
    gain = expected_gain(risk, table.cells["y"].to_numpy())
    weight = np.where(gain > limit, MARGIN * limit / np.maximum(gain, limit), 1.0)
    before = weights_of(posterior)
    return pd.Series(
        weight if before is None else weight * before, table.cells.index, name="weight"
    )


def expected_gain(risk: IntruderRisk, y: np.ndarray) -> np.ndarray:
    """Bits that one data set adds to the true count, on average over releases, by cell.

    Parameters
    ----------
    risk : IntruderRisk
        Of an intruder who knows all other counts.
    y : array of int, shape (cell,)
        True counts, from 0.
    """
    m = risk.release_probability.to_numpy()
    true = m[np.arange(len(y)), y]
    anyhow = np.einsum("tj,tjk->tk", risk.prediction.to_numpy(), m)
    ratio = np.log2(np.maximum(true, TINY)) - np.log2(np.maximum(anyhow, TINY))
    return np.asarray(np.maximum((true * ratio).sum(axis=1), 0.0))


def check_gain_limit(limit: float) -> None:
    """Refuse a limit that no cell can keep, or that is none."""
    if not (limit > 0.0 and math.isfinite(limit)):
        raise InputError(f"gain_limit must be a number of bits above 0; it is {limit}")


def weights_checks(table: FlowTable, posterior: xr.DataTree, risk: IntruderRisk) -> list[Check]:
    """What the weights of a fit are, and whether they did what was asked; empty without weights."""
    weight = weights_of(posterior)
    if weight is None:
        return []
    reason = (
        f"{int((weight < 1.0).sum()):,} of {len(weight):,} small cells weigh less than 1, the "
        f"least {weight.min():.2g} ({posterior.attrs['weights_from']}). {LOCAL}"
    )
    limit = posterior.attrs.get("gain_limit")
    if limit is None:
        return [Check("weights of cells", "look", reason, key="weights")]
    # data sets are independent given the counts: together they tell at most so many times as much
    sets = risk.datasets + risk.already_released.sizes["dataset"]
    gain = sets * expected_gain(risk, table.cells["y"].to_numpy())
    above = int((gain > limit).sum())
    by = "one data set" if sets == 1 else f"{sets} data sets"
    reason += (
        f". With these weights {above:,} cells may tell more than {limit:g} bits about their count "
        f"by {by}, at most {gain.max():.3f}"
    )
    if above:
        reason += (
            "; some began to when those beside them weighed less. Take a lower limit, or give the "
            "weights of risk_weights with this posterior"
        )
    return [Check("weights of cells", "fail" if above else "look", reason, key="weights")]
