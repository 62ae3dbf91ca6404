r"""Risk with its uncertainty: draws of the population frequencies, given the sample.

The models are those of :mod:`bayes_sdc.models.individual_risk`. Risks of single combinations are
integrated, not simulated; draws serve the totals over the file, whose spread they show.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import check_numbers, check_whole, individual_risk
from bayes_sdc.microdata.individual.population_models import (
    Combinations,
    draw_totals,
    known,
    shared,
    uncertain,
)
from bayes_sdc.microdata.individual.shared_rates import fit_rates
from bayes_sdc.microdata.posterior.sampling import (
    FEWEST_DRAWS,
    Estimate,
    Sampler,
    check_draws,
    check_sampler,
    estimate,
    learned_from,
)
from bayes_sdc.results import Fact, Result, with_interval
from bayes_sdc.seeds import generator, seed_or_fresh

Model = Literal["known", "uncertain", "gamma", "extended"]
MODELS: dict[Model, str] = {
    "known": "prior 1/rate for each combination, inclusion probability known; too low for rare "
    "combinations, since it expects the same of every unique",
    "uncertain": "prior 1/rate, inclusion probability from the weights with its uncertainty; wrong "
    "where the model 'known' is",
    "gamma": "the rates of all combinations share a Gamma distribution; too low in small samples, "
    "and blind to which unique is rare",
    "extended": "rates share a distribution whose shape may be negative: more rare combinations; "
    "too high where few combinations can occur",
}
SIMULATED = 20_000_000  # population frequencies drawn in all; fewer draws of a large table

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class SuperpopulationRisk(Result):
    """Risk of combinations and of the file under one model of the population.

    Made by :func:`bayes_sdc.superpopulation_risk`.

    Parameters
    ----------
    model : {"known", "uncertain", "gamma", "extended"}
        The assumption on the rates.
    risk : array of float, shape (combination,)
        Posterior mean of 1 / F, in [0, 1].
    risk_interval : array of float, shape (combination, 2)
        Central 95 % interval of the risk over what is uncertain of the parameters alone: of
        E[1 / F | parameters]. Without width where they are given, as in the model "known".
    inverse_interval : array of float, shape (combination, 2)
        Central 95 % interval of 1 / F itself, with F drawn anew and the parameters uncertain; its
        inverse is that of F.
    expected : Estimate
        Correct matches when every record is matched to one member of its population cell at random:
        the sum of 1 / F over records.
    tau1 : Estimate
        Sample uniques that are population uniques.
    tau2 : Estimate
        Correct matches among sample uniques.
    posterior : DataTree or None
        Of alpha and beta, for "gamma" and "extended".
    converged : bool
        Whether the quadrature converged, or the chains of NUTS agree; true where the parameters
        are given.
    trusted : bool
        False when the quadrature, or the chains of NUTS, did not converge; where the sampling
        fraction is below 1 / log n, since the models know the frequencies alone, and from so few no
        method without structure tells the rare combinations of the population from the rest; or
        where the frequencies do not have the shape of the model.
    draws : int
        Number of draws behind the totals.
    notes : tuple of str
        What was done otherwise than asked for.
    seed : int, optional
        Everything random followed from it.
    """

    model: str
    risk: Floats
    risk_interval: Floats
    inverse_interval: Floats
    expected: Estimate
    tau1: Estimate
    tau2: Estimate
    posterior: xr.DataTree | None
    converged: bool
    trusted: bool
    draws: int
    notes: tuple[str, ...]
    seed: int | None = None

    def _title(self) -> str:
        return f"Risk by the model {self.model!r} of the population: confidential"

    def _facts(self) -> list[Fact]:
        told = ("expected", "tau1", "tau2")
        values = [getattr(self, name) for name in told]
        shown = [with_interval(one.value, one.interval) for one in values]
        error = max(one.monte_carlo_error for one in values)
        return [
            ("expected", shown[0], "correct matches over all records, 95 % interval"),
            ("tau1", shown[1], "sample uniques that are population uniques"),
            ("tau2", shown[2], "correct matches among sample uniques"),
            (
                "Monte Carlo error",
                f"{error:.2g}",
                f"the largest of three, {self.draws:,} draws",
            ),
            ("converged", "yes" if self.converged else "NO", "quadrature or chains"),
            ("trusted", "yes" if self.trusted else "NO", "converged, with sample enough"),
        ]

    def __repr__(self) -> str:
        trust = "" if self.trusted else "; NOT TRUSTED"
        shown = with_interval(self.expected.value, self.expected.interval)
        tau1 = with_interval(self.tau1.value, self.tau1.interval)
        return f"<SuperpopulationRisk: model {self.model}; expected {shown}; tau1 {tau1}{trust}>"


@checked
def superpopulation_risk(
    f: npt.ArrayLike,
    p: npt.ArrayLike,
    *,
    records: npt.ArrayLike | None = None,
    model: Model = "known",
    spread: npt.ArrayLike | None = None,
    empty: int | None = None,
    draws: int = 1000,
    sampler: Sampler = "quadrature",
    trace: xr.DataTree | None = None,
    seed: int | None = None,
) -> SuperpopulationRisk:
    """Draw the population frequencies of all combinations, and sum up the risk of the file.

    Parameters
    ----------
    f : array_like of int, shape (combination,)
        Sample frequencies, 1 or more.
    p : array_like of float, shape (combination,)
        Probability to be in the sample, above 0 and at most 1.
    records : array_like of int, shape (combination,), optional
        Records with each combination; f by default. They differ where missing values match.
    model : {"known", "uncertain", "gamma", "extended"}
        See :data:`MODELS`.
    spread : array_like of float, shape (combination,)
        Relative standard deviation of p, for "uncertain" only; see `weight_spread`. A larger one
        than a p near 1 can have without meaning 0 or 1 counts as the largest that it can.
    empty : int, optional
        For "gamma" only: combinations that can occur and are not in the sample, without structural
        zeros. By default their number is unknown.
    draws : int
        Draws behind the totals; fewer, but at least 200, beyond 20 million frequencies in all.
    sampler : {"quadrature", "nuts"}
        How alpha and beta of "gamma" and "extended" are learned: means are exact by quadrature;
        NUTS samples the PyMC model, and compiles it first.
    trace : DataTree, optional
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.individual_risk_model`: then
        alpha and beta of "gamma" and "extended" are its draws, and nothing is learned here.
    seed : int, optional
        Everything random follows from it.
        By default a fresh one of 128 bits; ``seed`` of the result.

    Returns
    -------
    SuperpopulationRisk
        Means, intervals and whether to trust them.

    Raises
    ------
    InputError
        If an argument is out of range or does not go with the model.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.latent_class_risk, bayes_sdc.individual_risk_model

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2). J. Bethlehem, W. Keller,
    J. Pannekoek 1990, Journal of the American Statistical Association 85,
    https://doi.org/10.1080/01621459.1990.10475304, for the Poisson-gamma
    model. S. Engen 1974, Biometrika 61, for its extension.

    Examples
    --------
    >>> result = superpopulation_risk([1, 1, 3], [0.1, 0.2, 0.1], seed=1)
    >>> result.risk.round(4).tolist()
    [0.2558, 0.4024, 0.0464]
    >>> result.inverse_interval.round(4).tolist()
    [[0.0278, 1.0], [0.0588, 1.0], [0.0143, 0.1429]]
    >>> result.tau1.interval
    (0.0, 1.0)
    """
    individual_risk(f, p)  # judges f and p
    frequency = check_whole(f, "f")
    multiplicity = frequency if records is None else check_whole(records, "records")
    if frequency.ndim != 1 or not len(frequency) or multiplicity.shape != frequency.shape:
        raise InputError("f, p and records must have one dimension, equal lengths and no length 0")
    cells = Combinations(frequency, as_long("p", p, frequency), multiplicity)
    check_model(model, spread, empty)
    if trace is not None and model not in ("gamma", "extended"):
        raise InputError(f"the model {model!r} learns nothing, so it takes no trace")
    check_draws(draws)
    check_sampler(sampler)
    seed = seed_or_fresh(seed)
    used = int(np.clip(SIMULATED // len(frequency), FEWEST_DRAWS, draws))
    if model == "known":
        found = known(cells, used)
    elif model == "uncertain":
        found = uncertain(cells, used, as_long("spread", np.asarray(spread), frequency))
    else:
        extended = model == "extended"
        learned = (
            fit_rates(frequency, cells.p, empty, extended, used, seed, sampler)
            if trace is None
            else learned_from(trace, ["alpha", "beta"], f"model {model}")
        )
        found = shared(cells, used, learned)
    totals = draw_totals(cells, found, generator(seed, "superpopulation", model))
    alone = frequency == 1
    return SuperpopulationRisk(
        model=model,
        risk=found.risk,
        risk_interval=found.risk_interval,
        inverse_interval=found.inverse_interval,
        expected=estimate(totals[0], float(found.risk @ multiplicity), found.errors[0]),
        tau1=estimate(totals[1], found.tau1),
        tau2=estimate(totals[2], float(found.risk[alone].sum()), found.errors[1]),
        posterior=found.posterior,
        converged=found.converged,
        trusted=found.trusted,
        draws=used,
        notes=(*_fewer(used, draws, len(frequency)), *found.notes),
        seed=seed,
    )


def _fewer(used: int, draws: int, combinations: int) -> tuple[str, ...]:
    """Say that fewer draws were made than asked for."""
    if used == draws:
        return ()
    return (
        f"intervals by model are from {used:,} draws, not {draws:,}: there are "
        f"{combinations:,} combinations",
    )


def check_model(model: Model, spread: npt.ArrayLike | None, empty: int | None) -> None:
    """Refuse an argument that is missing, out of range or of another model."""
    for name, given, only in (("spread", spread, "uncertain"), ("empty", empty, "gamma")):
        if given is not None and model != only:
            raise InputError(f"{name} goes with the model {only!r}, not with {model!r}")
    if model == "uncertain" and spread is None:
        raise InputError("the model 'uncertain' needs spread; see weight_spread")
    if empty is not None and empty < 0:
        raise InputError(f"empty must be a whole number, 0 or more; it is {empty!r}")


def as_long(name: str, values: npt.ArrayLike, f: Integers) -> Floats:
    """Return one value a combination, or refuse what is neither one number nor as many as f."""
    given = check_numbers(values, name).astype(np.float64)
    if given.shape not in ((), (1,), f.shape):
        raise InputError(f"{name} must be one number or {len(f):,}, as many as f")
    return np.broadcast_to(given, f.shape)
