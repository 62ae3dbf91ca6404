r"""Superpopulation models of how often a combination of key values occurs.

A combination k has f_k records in the sample and F_k members in the population, each in the sample
with probability p_k. Its rate :math:`\lambda_k` is the expected F_k, so that

.. math:: F_k \mid \lambda_k \sim \mathrm{Poisson}(\lambda_k), \qquad
    f_k \mid F_k \sim \mathrm{Binomial}(F_k, p_k),

and, independently, :math:`f_k \sim \mathrm{Poisson}(p_k \lambda_k)` and
:math:`F_k - f_k \sim \mathrm{Poisson}((1 - p_k) \lambda_k)`. Four assumptions on the rates:

known
    prior :math:`1 / \lambda_k` and p_k known, as in the paper. Then
    :math:`F_k - f_k \mid f_k \sim \mathrm{NegBinomial}(f_k, p_k)`, a proper distribution.
uncertain
    the same with p_k from a Beta distribution around its design-based estimate. Under the prior
    :math:`1 / \lambda_k` the likelihood of f_k does not depend on p_k, so all that is known about
    p_k comes from the design.
gamma
    :math:`\lambda_k \sim \mathrm{Gamma}(\alpha, \beta)` for all combinations, with alpha and beta
    estimated from all f, so that a sample unique borrows strength: then
    :math:`F_k - f_k \mid f_k \sim \mathrm{NegBinomial}(f_k + \alpha, (\beta + p_k) / (\beta + 1))`.
    alpha = beta = 0 is the model "known".
extended
    the same formulas with alpha above -1 instead of 0. This needs the number of combinations to be
    unknown and large, and the likelihood of f given f > 0, which stays proper. Below 0 there are
    more rare combinations than any Gamma distribution gives, as in most real files.

References
----------
S. Polettini, "A note on the individual risk of disclosure", eq. (2).
J. Bethlehem, W. Keller, J. Pannekoek 1990, Journal of the American Statistical Association 85,
https://doi.org/10.1080/01621459.1990.10475304, for the Poisson-gamma model.
S. Engen 1974, Biometrika 61, for the extended negative binomial distribution.
"""

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.priors import (
    LOG_SCALE_SD,
    MOST_CERTAIN,
    RATES,
    beta_concentration,
    log_typical,
)

PRIORS = RATES


def build(f: npt.ArrayLike, p: npt.ArrayLike, *, spread: npt.ArrayLike | None = None) -> pm.Model:
    """Models "known" and "uncertain", given the sample frequencies.

    Nothing is observed: the distributions are those after f was seen, so forward draws
    (``pm.sample_prior_predictive`` or ``pm.draw``) are draws from the posterior.

    Parameters
    ----------
    f : array_like of int, shape (combination,)
        Sample frequencies, 1 or more.
    p : array_like of float, shape (combination,)
        Probability to be in the sample, above 0 and at most 1.
    spread : array_like of float, shape (combination,), optional
        Relative standard deviation of p; 0 or None where it is known. It is limited as described in
        `beta_concentration`.

    Returns
    -------
    pm.Model
        ``unsampled`` is F - f, ``population`` F and ``risk`` 1 / F; with spread ``inclusion`` is p.
    """
    frequency = np.asarray(f, dtype=np.int64)
    inclusion = np.minimum(np.asarray(p, dtype=np.float64), MOST_CERTAIN)
    with pm.Model(coords={"combination": np.arange(len(frequency))}) as model:
        if spread is None:
            chance = pt.as_tensor(inclusion)
        else:
            concentration = beta_concentration(inclusion, np.asarray(spread, dtype=np.float64))
            chance = pm.Beta(
                "inclusion",
                alpha=inclusion * concentration,
                beta=(1.0 - inclusion) * concentration,
                dims="combination",
            )
        unsampled = pm.NegativeBinomial("unsampled", n=frequency, p=chance, dims="combination")
        population = pm.Deterministic("population", frequency + unsampled, dims="combination")
        pm.Deterministic("risk", 1.0 / population, dims="combination")
    return model


def build_shared(
    f: npt.ArrayLike,
    p: npt.ArrayLike,
    copies: npt.ArrayLike,
    *,
    unseen: npt.ArrayLike | None = None,
    extended: bool = False,
) -> pm.Model:
    """Models "gamma" and "extended": alpha and beta from the frequencies of all combinations.

    Parameters
    ----------
    f : array_like of int, shape (group,)
        Sample frequencies, 1 or more. Combinations of equal f and p make a group.
    p : array_like of float, shape (group,)
        Probability to be in the sample, above 0 and at most 1.
    copies : array_like of int, shape (group,)
        Number of combinations in the group; 0 makes a group idle.
    unseen : array_like of float, shape (group,), optional
        Combinations with the p of the group that can occur and are not in the sample; structural
        zeros must not be counted. By default their number is unknown, and f is truncated at zero.
    extended : bool
        Whether alpha may be negative; not with ``unseen``.

    Returns
    -------
    pm.Model
        Free variables ``log_shape`` and ``log_scale``; ``alpha`` and ``beta`` derived from them.
        ``with_data`` of a compiled model can replace the arrays by others of the same length. The
        likelihood stands for many combinations at once, so ``f`` has no forward draws.
    """
    if extended and unseen is not None:
        raise ValueError("a negative alpha needs the number of combinations to be unknown")
    frequency, inclusion, number = (np.asarray(x, dtype=np.float64) for x in (f, p, copies))
    prior = PRIORS["extended" if extended else "gamma"]
    with pm.Model(coords={"group": np.arange(len(frequency))}) as model:
        frequencies = pm.Data("frequencies", frequency, dims="group")
        chance = pm.Data("inclusion", inclusion, dims="group")
        weight = pm.Data("copies", number, dims="group")
        typical = pm.Data("log_typical", log_typical(frequency, inclusion, number))
        # data, so that one compiled model serves both assumptions on alpha
        lowest, mean, sd = (pm.Data(name, value) for name, value in prior.items())
        log_shape = pm.Normal("log_shape", mean, sd)
        log_scale = pm.Normal("log_scale", typical, LOG_SCALE_SD)
        alpha = pm.Deterministic("alpha", lowest + pt.exp(log_shape))
        beta = pm.Deterministic("beta", pt.exp(-log_scale))
        parameters = [alpha, beta, chance, weight]
        if unseen is not None:
            parameters.append(pm.Data("unseen", unseen, dims="group"))
        pm.CustomDist(
            "f",
            *parameters,
            logp=_truncated if unseen is None else _with_unseen,
            observed=frequencies,
            dims="group",
        )
    return model


def build_population(
    f: npt.ArrayLike, p: npt.ArrayLike, *, alpha: float | None = None, beta: float | None = None
) -> pm.Model:
    r"""Population frequencies in the models "gamma" and "extended", given alpha and beta.

    Nothing is observed: given the sample, the rate of a combination is
    :math:`\mathrm{Gamma}(f_k + \alpha, \beta + p_k)` and F - f a Poisson variable of mean
    (1 - p) times the rate. Without numbers for alpha and beta they are to be taken from a posterior
    of `build_shared`, by ``pm.sample_posterior_predictive``; with numbers forward draws
    (``pm.sample_prior_predictive``) are draws from the posterior given these.

    Parameters
    ----------
    f : array_like of int, shape (combination,)
        Sample frequencies, 1 or more.
    p : array_like of float, shape (combination,)
        Probability to be in the sample, above 0 and at most 1.
    alpha, beta : float, optional
        Shape, above -1, and rate, 0 or more, of the distribution that the rates share.

    Returns
    -------
    pm.Model
        ``rate`` of each combination; ``unsampled`` is F - f, ``population`` F and ``risk`` 1 / F.
    """
    frequency = np.asarray(f, dtype=np.int64)
    inclusion = np.asarray(p, dtype=np.float64)
    with pm.Model(coords={"combination": np.arange(len(frequency))}) as model:
        shape = pm.Flat("alpha") if alpha is None else alpha
        shared = pm.Flat("beta") if beta is None else beta
        rate = pm.Gamma(
            "rate", alpha=frequency + shape, beta=shared + inclusion, dims="combination"
        )
        unsampled = pm.Poisson("unsampled", mu=(1.0 - inclusion) * rate, dims="combination")
        population = pm.Deterministic("population", frequency + unsampled, dims="combination")
        pm.Deterministic("risk", 1.0 / population, dims="combination")
    return model


def _kernel(
    f: pt.TensorVariable,
    alpha: pt.TensorVariable,
    beta: pt.TensorVariable,
    p: pt.TensorVariable,
    log_none: pt.TensorVariable,
) -> pt.TensorVariable:
    """Negative binomial log-probability without -log Gamma(alpha); log_none: log P(0) / alpha."""
    members = pt.gammaln(f + alpha) - pt.gammaln(f + 1.0)
    return members + alpha * log_none - f * pt.log1p(beta / p)


def _with_unseen(
    f: pt.TensorVariable,
    alpha: pt.TensorVariable,
    beta: pt.TensorVariable,
    p: pt.TensorVariable,
    copies: pt.TensorVariable,
    unseen: pt.TensorVariable,
) -> pt.TensorVariable:
    log_none = -pt.log1p(p / beta)
    seen = _kernel(f, alpha, beta, p, log_none) - pt.gammaln(alpha)
    return copies * seen + unseen * alpha * log_none


def _truncated(
    f: pt.TensorVariable,
    alpha: pt.TensorVariable,
    beta: pt.TensorVariable,
    p: pt.TensorVariable,
    copies: pt.TensorVariable,
) -> pt.TensorVariable:
    """Given f > 0: Gamma(alpha) (1 - P(0)) is Gamma(1 + alpha) times (1 - P(0)) / alpha > 0."""
    log_none = -pt.log1p(p / beta)
    exponent = alpha * log_none
    small = pt.abs(exponent) < 1e-5
    divisor = pt.switch(small, 1.0, exponent)
    ratio = pt.switch(small, 1.0 + 0.5 * exponent, pt.expm1(divisor) / divisor)
    seen = _kernel(f, alpha, beta, p, log_none) - pt.gammaln(1.0 + alpha)
    return copies * (seen - pt.log(-log_none) - pt.log(ratio))
