"""The PyMC model of how often combinations occur, to sample, change and look at.

What :func:`bayes_sdc.superpopulation_risk` integrates is this model; it also takes its traces.
"""

import numpy.typing as npt
import pymc as pm

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import check_whole, individual_risk
from bayes_sdc.microdata.individual.shared_rates import group_rates
from bayes_sdc.microdata.individual.superpopulation import Model, as_long, check_model


@checked
def individual_risk_model(
    f: npt.ArrayLike,
    p: npt.ArrayLike,
    *,
    model: Model = "gamma",
    spread: npt.ArrayLike | None = None,
    empty: int | None = None,
) -> pm.Model:
    """Build the PyMC model of the population frequencies behind an individual risk.

    Sample it with ``pm.sample``, draw it with ``pm.model_to_graphviz``, or add to it in a ``with``
    block; :func:`bayes_sdc.superpopulation_risk` takes its trace.

    Parameters
    ----------
    f : array_like of int, shape (combination,)
        Sample frequencies, 1 or more.
    p : array_like of float, shape (combination,)
        Probability to be in the sample, above 0 and at most 1.
    model : {"known", "uncertain", "gamma", "extended"}
        As for :func:`bayes_sdc.superpopulation_risk`.
    spread : array_like of float, shape (combination,)
        Relative standard deviation of p, for "uncertain" only.
    empty : int, optional
        For "gamma" only: combinations that can occur and are not in the sample.

    Returns
    -------
    pymc.Model
        For "gamma" and "extended" as :func:`bayes_sdc.models.individual_risk.build_shared` has it:
        free ``log_shape`` and ``log_scale``, with ``alpha`` and ``beta`` of the rates; combinations
        of equal f, and p equal to one per cent, are one group. For "known" and "uncertain" as
        :func:`bayes_sdc.models.individual_risk.build` has it: nothing is observed, and forward
        draws of ``population`` and ``risk`` are draws from the posterior.

    Raises
    ------
    InputError
        If an argument is out of range or does not go with the model.

    See Also
    --------
    bayes_sdc.superpopulation_risk, bayes_sdc.uniques_model

    References
    ----------
    J. Bethlehem, W. Keller, J. Pannekoek 1990, Journal of the American Statistical Association 85,
    https://doi.org/10.1080/01621459.1990.10475304.

    Examples
    --------
    >>> model = individual_risk_model([1, 1, 3], [0.1, 0.2, 0.1])
    >>> sorted(variable.name for variable in model.free_RVs)
    ['log_scale', 'log_shape']
    """
    from bayes_sdc.models.individual_risk import build, build_shared

    individual_risk(f, p)  # which judges f and p
    check_model(model, spread, empty)
    frequency = check_whole(f, "f")
    if frequency.ndim != 1 or not len(frequency):
        raise InputError("f must have one dimension, and not the length 0")
    inclusion = as_long("p", p, frequency)
    if model in ("known", "uncertain"):
        deviation = None if spread is None else as_long("spread", spread, frequency)
        return build(frequency, inclusion, spread=deviation)
    groups = group_rates(frequency, inclusion, empty)
    return build_shared(
        groups.f, groups.p, groups.copies, unseen=groups.unseen, extended=model == "extended"
    )
