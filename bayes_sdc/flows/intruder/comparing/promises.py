"""Cost and disclosure of one promise, for the model, noise and other synthesis, by epsilon.

The intruder knows the mechanism, which cells are small, and all true small counts but the target's;
all counts are equally probable to them.
"""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fit import fit
from bayes_sdc.flows.fit.settings import sampling_of, with_bound
from bayes_sdc.flows.intruder.comparing.protections import MODEL, row_of
from bayes_sdc.flows.intruder.log_ratios import log_ratios
from bayes_sdc.flows.intruder.measure import intruder_risk
from bayes_sdc.flows.intruder.probabilities.bayes import TINY, posterior_of_counts
from bayes_sdc.flows.release.protections.prior_samples import check_promise
from bayes_sdc.flows.release.protections.promised import DELTA, promised
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.synthetic.synthesis import synthesize
from bayes_sdc.flows.release.use.distinguishing import known_of_cells
from bayes_sdc.flows.release.use.utility import ground_truth
from bayes_sdc.flows.table.centres import Centres, resolve_bound, shares_elsewhere
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import seed_or_fresh


@checked
def compare_promises(
    table: FlowTable,
    *,
    epsilons: Iterable[float] = (2.0, 1.0, 0.5, 0.25),
    delta: float = DELTA,
    centres: Centres = "bundled",
    draws: int = 500,
    tune: int | None = None,
    chains: int = 4,
    seed: int | None = None,
) -> pd.DataFrame:
    """Compare the bounded model with other mechanisms of the same epsilon, by risk and utility.

    Parameters
    ----------
    table : FlowTable
        The table to protect.
    epsilons : iterable of float
        For one person more or less in a small cell; the default model is fitted for each, and once
        without a bound.
    delta : float
        Probability with which the Dirichlet-multinomial synthesis may exceed epsilon, from 0 on.
    centres : {"bundled"}, path or sequence of float
        Public shares of the counts, as for :func:`bayes_sdc.fit_flows`; all methods use them.
    draws, tune, chains : int
        As for :func:`bayes_sdc.fit_flows`.
    seed : int, optional
        Of all fits and releases; by default a fresh one.

    Returns
    -------
    pandas.DataFrame
        One row per method and epsilon: ``method``, ``epsilon`` (infinite without a bound),
        ``delta``, ``log_ratio`` (largest over one cell's release between neighbouring counts, in
        this table; for the model a lower bound, after its Monte Carlo error), and the columns of
        :func:`bayes_sdc.compare_protections` from ``before`` to ``unchanged``.

    Raises
    ------
    InputError
        If an epsilon or the delta promises nothing, or the centres come from the table.

    See Also
    --------
    bayes_sdc.compare_protections, bayes_sdc.plot_promises, bayes_sdc.guarantee

    Notes
    -----
    The other mechanisms are geometric noise, clamped to the small counts and unclamped;
    Poisson-gamma synthesis of each cell from its own count; and Dirichlet-multinomial synthesis of
    the cells of each group and destination, which has a delta:
    :mod:`bayes_sdc.flows.release.protections.prior_samples`.

    References
    ----------
    Machanavajjhala, Kifer, Abowd, Gehrke and Vilhuber 2008, doi:10.1109/ICDE.2008.4497436;
    Quick 2021, doi:10.1111/rssa.12711.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import compare_promises, read_flows
    >>> frame = pd.DataFrame({"o": list("aabbcc"), "d": list("xyxyxy"), "n": [1, 4, 2, 5, 3, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> compared = compare_promises(table, epsilons=[1.0], draws=50, tune=50, chains=2, seed=1)
    >>> compared["epsilon"].tolist()
    [inf, 1.0, 1.0, 1.0, 1.0, 1.0]
    >>> bool((compared["log_ratio"] <= compared["epsilon"] + 1e-9).all())
    True
    """
    seed = seed_or_fresh(seed)
    asked = [float(epsilon) for epsilon in epsilons]
    if not asked:
        raise InputError("epsilons: name at least one, such as [1.0, 0.5]")
    shares, _ = shares_elsewhere(table, centres)
    for epsilon in asked:  # refuse before the first fit
        check_promise(epsilon, delta)
        resolve_bound(table, epsilon, shares.tolist())
    truth, known = ground_truth(table), known_of_cells(table)
    y = table.cells["y"].to_numpy(np.int64)
    even = np.full((len(y), table.k + 1), 1.0 / (table.k + 1))
    rows = []

    def add(
        method: str, promise: tuple[float, float], ratio: float, counts: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> None:  # fmt: skip
        rho = posterior_of_counts(log_likelihood, even)
        names = dict(zip(("epsilon", "delta"), promise, strict=True))
        risk = row_of(table, truth, known, counts, even, rho)
        rows.append({"method": method, **names, "log_ratio": ratio, **risk})

    settings = sampling_of(
        family="default", prior="default", sampler="gibbs", draws=draws, tune=tune, chains=chains,
        seed=seed, cores=None, scheduler=None,
    )  # fmt: skip
    fitted: list[float | None] = [None, *asked]
    for bound in fitted:
        around = "bundled" if bound is None else shares.tolist()
        posterior = fit(table, with_bound(settings, table, bound, around))
        release = synthesize(table, posterior, seed=seed)
        risk = intruder_risk(table, posterior, release, seed=seed)
        at = released_counts(table, release)[0]
        m = risk.release_probability.to_numpy()
        of_release = np.log(np.maximum(m[np.arange(len(y)), :, at], TINY))
        ratio = float(log_ratios(risk).by_cell["neighbours_at_least"].max())
        promise = (math.inf if bound is None else bound, 0.0)
        add(MODEL, promise, ratio, at + float(table.low), of_release)
    for epsilon in asked:
        for one in promised(table, epsilon=epsilon, shares=shares, delta=delta, seed=seed):
            add(one.method, (epsilon, one.delta), one.log_ratio, one.counts, one.log_likelihood)
    return pd.DataFrame(rows)
