"""Whether longer mixing would leave fewer true counts in a release that keeps totals.

A chain that starts at the truth and stops early releases the truth while all else looks right. Ours
starts at a draw of the model, but every release is tested: the same release is drawn with several
times the steps, and the share of cells with their true count must not come down.
"""

import math

import numpy as np

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.model.rates import Rates
from bayes_sdc.flows.release.synthetic.synthesis import draw_datasets_given_totals
from bayes_sdc.flows.release.totals.draws import SWEEPS, Mixing
from bayes_sdc.flows.table.cells import SmallCells

LONGER = 4  # times the steps of the release
BEYOND = 4.0  # standard errors of the difference beyond chance


def share_at_plateau(
    cells: SmallCells,
    kept: Mixing,
    rates: Rates,
    released: np.ndarray,
    *,
    seed: int,
    cores: int | None = None,
) -> Check:
    """Check that as many counts are the true ones as after many more steps, and not more.

    Parameters
    ----------
    cells : SmallCells
        With the true counts.
    kept : Mixing
        The totals.
    rates : Rates
        Posterior draws.
    released : array of int, shape (dataset, cell)
        The release, drawn with this seed.
    seed : int
        Of the release.
    cores : int, optional
        Threads; by default all.
    """
    longer = draw_datasets_given_totals(
        cells, kept, rates, len(released), seed=seed, cores=cores, sweeps=LONGER * SWEEPS
    )
    now, later = (float((data == cells.y).mean()) for data in (released, longer))
    return Check(
        "mixing given totals",
        plateau_verdict(now, later, released.size),
        f"{now:.1%} of the small counts are the true ones in the release, and "
        f"{later:.1%} after {LONGER} times as many steps",
        key="mixing_given_totals",
    )


def plateau_verdict(now: float, later: float, counts: int) -> Verdict:
    """Judge the share of true counts now by the share after many more steps.

    Parameters
    ----------
    now, later : float
        Shares of counts that are the true ones.
    counts : int
        Number of counts in each.

    Examples
    --------
    >>> plateau_verdict(0.30, 0.29, 1000), plateau_verdict(0.60, 0.29, 1000)
    ('pass', 'fail')
    """
    middle = (now + later) / 2.0
    error = math.sqrt(2.0 * middle * (1.0 - middle) / counts)
    if now - later > BEYOND * error:
        return "fail"
    return "look" if later - now > BEYOND * error else "pass"
