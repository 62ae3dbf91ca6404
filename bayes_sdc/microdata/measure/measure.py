"""Measuring the record-level risk of a file in one call: counts, risks, models, verdicts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.comparison.compare import check_cells, compare_risks, size_indices_differ
from bayes_sdc.microdata.comparison.result import RiskComparison
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.closed_form import household_risk
from bayes_sdc.microdata.individual.inclusion import weight_spread
from bayes_sdc.microdata.individual.record_risk import RecordRisk, record_risk
from bayes_sdc.microdata.individual.superpopulation import (
    MODELS,
    Model,
    SuperpopulationRisk,
    superpopulation_risk,
)
from bayes_sdc.microdata.latent_classes.risk import (
    LatentClassRisk,
    latent_class_risk,
    recommended_risk,
)
from bayes_sdc.microdata.limits import check_limits
from bayes_sdc.microdata.measure.drivers import find_drivers
from bayes_sdc.microdata.measure.population import fraction_of, people_of, truth_of
from bayes_sdc.microdata.measure.result import Measurement, Unstructured
from bayes_sdc.microdata.measure.verdicts import verdicts
from bayes_sdc.microdata.patience import refuse_nearly_unique
from bayes_sdc.microdata.posterior.sampling import check_draws
from bayes_sdc.microdata.uniques.learned import learn_uniques
from bayes_sdc.microdata.uniques.unstructured import expected_uniques, uniques_deviation
from bayes_sdc.policy import Policy, read_policy
from bayes_sdc.seeds import seed_or_fresh

ALL_IN_FILE = (
    "every record stands for itself alone, so how many people share its key values counts as "
    "known: the risk is 1/f, and no model of it was fitted"
)


@checked
def measure_microdata(
    microdata: Microdata,
    *,
    population_size: int | None = None,
    sampling_fraction: float | None = None,
    cells: int | None = None,
    policy: Policy | PathLike | None = None,
    population_counts: npt.ArrayLike | None = None,
    draws: int = 1000,
    seed: int | None = None,
    force: bool = False,
) -> Measurement:
    """Measure the risk of every record and of the file, and judge it by a policy.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    population_size : int, optional
        N. Without weights and fraction it gives the sampling fraction n / N. With weights it only
        is compared with their sum.
    sampling_fraction : float, optional
        n / N, for a file without weights and instead of the population size.
    cells : int, optional
        Combinations that can occur, without structural zeros: adds the estimates of population
        uniques that need this number.
    policy : Policy or path, optional
        From :func:`bayes_sdc.read_policy`, or its file: limits, each judged by a check; none by
        default.
    population_counts : array_like of int, shape (record,), optional
        For each record how many members of the population share its key values, where that is
        known: the truth beside the estimates.
    draws : int
        Draws behind the intervals.
    seed : int, optional
        Everything random follows from it.
        By default a fresh one of 128 bits; ``seed`` of the result.
    force : bool
        Whether to run the models though a key variable is nearly unique, and methods that take
        minutes.

    Returns
    -------
    Measurement
        Risks, totals, verdicts.

    Raises
    ------
    InputError
        If an argument cannot be used, two contradict each other, the population is beyond 2^53, the
        policy has no section for microdata, or a key variable has another value in more than 95 %
        of the records.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.latent_class_risk, bayes_sdc.superpopulation_risk,
    bayes_sdc.compare_risks

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2). D. Manrique-Vallier, J. P.
    Reiter 2012, doi:10.1080/01621459.2012.710508, for the recommended estimate.

    Examples
    --------
    >>> import datetime
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> from bayes_sdc.policy import MicrodataLimits, Policy
    >>> people = pd.DataFrame({"sex": list("mmfm"), "age": list("2232"), "w": [10, 30, 5, 9]})
    >>> microdata = read_microdata(people, keys=["sex", "age"], weight="w")
    >>> policy = Policy("Survey", datetime.date(2026, 1, 15), microdata=MicrodataLimits(k=3))
    >>> result = measure_microdata(microdata, policy=policy, seed=1)
    >>> [(check.name, check.verdict) for check in result.checks][-1]
    ('limit k', 'fail')
    """
    policy = _limits(policy)
    seed = seed_or_fresh(seed)
    check_draws(draws)  # before the latent classes, which take longest
    if not force:
        refuse_nearly_unique(microdata)
    fraction = fraction_of(microdata, population_size, sampling_fraction)
    if cells is not None:
        check_cells(microdata, cells)
    seconds: dict[str, float] = {}
    with _timed(seconds, "individual risk"):
        risk = record_risk(microdata, sampling_fraction=fraction)
    N = population_size or max(microdata.n, round(float(people_of(microdata, fraction))))
    truth = None if population_counts is None else truth_of(microdata, population_counts)

    classes = None
    if microdata.n < N and microdata.sample_uniques:
        with _timed(seconds, "latent classes"):
            classes = latent_class_risk(microdata, population_size=N, seed=seed)
    differing = size_indices_differ(microdata)
    certain = bool((risk.combinations["p"] == 1).all())
    notes = [ALL_IN_FILE] if certain else []
    with _timed(seconds, "totals of the file"):
        models = _by_model(microdata, risk.combinations, draws, seed, certain=certain)
    with _timed(seconds, "households"):
        households = _households(risk, recommended_risk(risk, classes), models)
    unstructured = None
    if cells is not None and differing:
        notes += [f"uniques without structure were not estimated: {why}" for why in differing]
    elif cells is not None:
        with _timed(seconds, "uniques without structure"):
            unstructured = _unstructured(microdata, N, cells, draws, seed)
    with _timed(seconds, "comparison"):
        comparison, why = _comparison(microdata, N, cells, classes, models, seed, slow=force)
    notes += why
    # a stage that had nothing to do is not one
    if households is None:
        del seconds["households"]
    if comparison is None and not why:
        del seconds["comparison"]
    return Measurement(
        data=microdata,
        risk=risk,
        latent_classes=classes,
        models=models,
        households=households,
        unstructured=unstructured,
        comparison=comparison,
        population_size=N,
        truth=truth,
        checks=[
            *verdicts(microdata, risk, models, unstructured, N, population_size),
            *([] if classes is None else classes.checks),
            *check_limits(policy, risk, models, classes),
        ],
        notes=tuple(notes),
        seconds=seconds,
        seed=seed,
        drivers=find_drivers(microdata, classes),
    )


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note the wall time of a stage."""
    start = monotonic()
    yield
    seconds[stage] = monotonic() - start


def _comparison(
    microdata: Microdata,
    N: int,
    cells: int | None,
    classes: LatentClassRisk | None,
    models: Mapping[str, SuperpopulationRisk],
    seed: int,
    *,
    slow: bool,
) -> tuple[RiskComparison | None, list[str]]:
    """All measures side by side, or why there are none."""
    if len(microdata.keys) < 2 or not microdata.sample_uniques or microdata.n >= N:
        return None, []
    try:
        found = compare_risks(
            microdata, N, cells=cells, latent_classes=classes, models=models, seed=seed, slow=slow
        )
    except InputError as error:
        # the risks stand without it: more keys or sets than SUDA can search, say
        return None, [f"the measures were not compared: {error}"]
    return found, []


def _households(
    risk: RecordRisk,
    recommended: npt.NDArray[np.float64],
    models: Mapping[str, SuperpopulationRisk],
) -> pd.DataFrame | None:
    """Risk of each household by the closed form, as recommended, and by every model."""
    frame, data = risk.households(), risk.data
    if frame is None:
        return None
    first = frame["first_record"].to_numpy() - 1
    by = {name: model.risk[data.combination] for name, model in models.items()}
    for name, of_record in {"recommended": recommended, **by}.items():
        frame[f"risk_{name}"] = household_risk(of_record, data.household)[first]
    return frame


def _unstructured(data: Microdata, N: int, cells: int, draws: int, seed: int) -> Unstructured:
    sizes, s, n = data.size_indices, data.sample_uniques, data.n
    return Unstructured(
        cells=cells,
        uniform=expected_uniques(s, n, N, cells),
        uniform_deviation=uniques_deviation(s, n, N, cells),
        learned=learn_uniques(sizes, N, cells, draws=draws, seed=seed),
    )


def _limits(policy: Policy | PathLike | None) -> Policy | None:
    """Return a policy, read where its file is given; refuses one without limits for microdata."""
    if policy is None:
        return None
    limits = policy if isinstance(policy, Policy) else read_policy(policy)
    limits.for_microdata()
    return limits


def _by_model(
    microdata: Microdata, frame: pd.DataFrame, draws: int, seed: int, *, certain: bool
) -> dict[str, SuperpopulationRisk]:
    """Risk by every model that goes with the file.

    Not on threads: the libraries behind them load dask when first asked, each in its own way, and
    one that meets the half loaded module fails.
    """
    spread = None
    if microdata.weights is not None and not certain:
        spread = weight_spread(
            microdata.weights, microdata.combination, frame["records"], f=frame["f"]
        )
    names = [
        model
        for model in MODELS
        # F = f leaves nothing to learn; and a fraction is known, not estimated
        if model == "known" or not (certain or (model == "uncertain" and spread is None))
    ]

    def risk_by(model: Model) -> SuperpopulationRisk:
        return superpopulation_risk(
            frame["f"],
            frame["p"],
            records=frame["records"],
            model=model,
            spread=spread if model == "uncertain" else None,
            draws=draws,
            seed=seed,
        )

    return {name: risk_by(name) for name in names}
