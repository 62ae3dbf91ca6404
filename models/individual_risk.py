r"""Superpopulation models of how often a combination of key values occurs.

A combination k has f_k records in the sample and F_k members in the population, each in the sample
with probability p_k. Its rate :math:`\lambda_k` is the expected F_k, so that

.. math:: F_k \mid \lambda_k \sim \mathrm{Poisson}(\lambda_k), \qquad
    f_k \mid F_k \sim \mathrm{Binomial}(F_k, p_k),

and, independently, :math:`f_k \sim \mathrm{Poisson}(p_k \lambda_k)` and
:math:`F_k - f_k \sim \mathrm{Poisson}((1 - p_k) \lambda_k)`. Three assumptions on the rates:

known
    prior :math:`1 / \lambda_k` and p_k known, as in the paper. Then
    :math:`F_k - f_k \mid f_k \sim \mathrm{NegBinomial}(f_k, p_k)`, a proper distribution.
uncertain
    the same with p_k from a Beta distribution around its design-based estimate. Under the prior
    :math:`1 / \lambda_k` the likelihood of f_k does not depend on p_k, so what the design says of
    p_k is all that is known of it.
shared
    :math:`\lambda_k \sim \mathrm{Gamma}(\alpha, \beta)` for all combinations, with alpha and beta
    estimated from all f, so that a sample unique borrows strength: then
    :math:`F_k - f_k \mid f_k \sim \mathrm{NegBinomial}(f_k + \alpha, (\beta + p_k) / (\beta + 1))`.
    alpha = beta = 0 is the model "known".

References
----------
S. Polettini, "A note on the individual risk of disclosure", eq. (2).
J. Bethlehem, W. Keller, J. Pannekoek 1990, Journal of the American Statistical Association 85,
for the Poisson-gamma model.
"""

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

#: Normal priors of model "shared": log alpha, and log(1 / beta) about the log of the mean of f / p.
PRIORS: dict[str, dict[str, float]] = {
    "log_shape": {"mean": -1.0, "sd": 2.0},
    "log_scale": {"sd": 2.5},
}
MOST_CERTAIN = 1.0 - 1e-12  # PyMC's negative binomial needs p below 1


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
        Relative standard deviation of p; 0 or None where it is known. The largest value that a
        Beta distribution of mean p can have is taken where it is exceeded.

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


def beta_concentration(
    p: npt.NDArray[np.float64], spread: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Sum of the two parameters of a Beta distribution of mean p and relative deviation spread.

    It is kept from 1e-3 (nearly all mass at 0 and 1) to 1e12 (p is known).
    """
    with np.errstate(divide="ignore", over="ignore"):
        concentration = (1.0 - p) / (p * spread**2) - 1.0
    return np.clip(concentration, 1e-3, 1e12)


def build_shared(
    f: npt.ArrayLike, p: npt.ArrayLike, copies: npt.ArrayLike, *, empty: int | None = None
) -> pm.Model:
    """Model "shared": alpha and beta from the frequencies of all combinations, by NUTS.

    Parameters
    ----------
    f : array_like of int, shape (group,)
        Sample frequencies, 1 or more. Combinations of equal f and p make a group.
    p : array_like of float, shape (group,)
        Probability to be in the sample, above 0 and at most 1.
    copies : array_like of int, shape (group,)
        Number of combinations in the group.
    empty : int, optional
        Combinations that can occur and are not in the sample; structural zeros must not be counted.
        By default their number is unknown, and f is truncated at zero.

    Returns
    -------
    pm.Model
        Free variables ``log_shape`` and ``log_scale``; ``alpha`` and ``beta`` derived from them.
    """
    frequency = np.asarray(f, dtype=np.int64)
    inclusion, number = np.asarray(p, dtype=np.float64), np.asarray(copies, dtype=np.float64)
    typical = float(np.average(frequency / inclusion, weights=number))
    with pm.Model(coords={"group": np.arange(len(frequency))}) as model:
        log_shape = pm.Normal("log_shape", PRIORS["log_shape"]["mean"], PRIORS["log_shape"]["sd"])
        log_scale = pm.Normal("log_scale", np.log(typical), PRIORS["log_scale"]["sd"])
        alpha = pm.Deterministic("alpha", pt.exp(log_shape))
        beta = pm.Deterministic("beta", pt.exp(-log_scale))

        def log_likelihood(
            value: pt.TensorVariable, shape: pt.TensorVariable, rate: pt.TensorVariable
        ) -> pt.TensorVariable:
            occupied = -pt.log1p(inclusion / rate)  # log of beta / (beta + p)
            each = (
                pt.gammaln(value + shape)
                - pt.gammaln(shape)
                - pt.gammaln(value + 1.0)
                + shape * occupied
                - value * pt.log1p(rate / inclusion)
            )
            if empty is None:
                # the negative number keeps its digits when alpha is small
                each = each - pt.log(-pt.expm1(shape * occupied))
                return number * each
            mean = np.average(inclusion, weights=number)
            none = -empty * shape * pt.log1p(mean / rate)
            return number * each + none / len(frequency)

        pm.CustomDist("f", alpha, beta, logp=log_likelihood, observed=frequency, dims="group")
    return model
