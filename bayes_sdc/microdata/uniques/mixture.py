"""Several concentrations of the table at once, weighed by what the sample says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import check_numbers
from bayes_sdc.microdata.uniques.unstructured import (
    check_concentration,
    check_size_indices,
    check_sizes,
    unique_probability,
)
from bayes_sdc.results import Fact, Result


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Result):
    """A prior that mixes concentrations, after the data were seen.

    Made by :func:`bayes_sdc.mixture_of_priors`.

    Parameters
    ----------
    weights : array of float, shape (concentration,)
        Posterior weights; they add up to 1.
    probability : float
        Q, averaged over the posterior weights.
    """

    weights: npt.NDArray[np.float64]
    probability: float

    def _title(self) -> str:
        return "Mixture of concentrations"

    def _facts(self) -> list[Fact]:
        meaning = "that a sample unique is alone in the population"
        weights = ", ".join(f"{weight:.3g}" for weight in self.weights)
        return [
            ("probability", f"{self.probability:.4g}", meaning),
            ("weights", weights, "of the concentrations, after the data"),
        ]


@checked
def mixture_of_priors(
    size_indices: pd.Series | Mapping[int, int],
    N: int,
    K: int,
    *,
    concentrations: Sequence[float],
    weights: Sequence[float] | None = None,
) -> Mixture:
    """Weigh several concentrations by what the sample says of them.

    Parameters
    ----------
    size_indices : Series or mapping
        Number of cells by the number of sampled members in them, sizes from 1 as index or keys.
    N, K : int
        As for `unique_probability`.
    concentrations : sequence of float
        Each above 0; ``math.inf`` is allowed.
    weights : sequence of float, optional
        Prior weights, 0 or more; equal ones by default.

    Returns
    -------
    Mixture
        Posterior weights, and the probability that a sample unique is alone.

    Raises
    ------
    InputError
        If an argument is out of range or the lengths differ.

    See Also
    --------
    bayes_sdc.unique_probability, bayes_sdc.learn_uniques

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> import math
    >>> sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    >>> result = mixture_of_priors(sizes, 1000, 50, concentrations=[0.1, 0.2, math.inf])
    >>> result.weights.round(3).tolist(), round(result.probability, 4)
    ([0.144, 0.856, 0.0], 0.0711)
    """
    sizes, cells, n = check_size_indices(size_indices, K)
    check_sizes(n, N, K)
    for concentration in concentrations:
        check_concentration(concentration)
    prior = np.ones(len(concentrations))
    if weights is not None:
        prior = check_numbers(weights, "weights").astype(np.float64)
    if not len(concentrations) or len(prior) != len(concentrations):
        raise InputError(f"{len(concentrations)} concentrations but {len(prior)} weights")
    if not (np.all(prior >= 0) and np.isfinite(prior.sum()) and prior.sum() > 0):
        raise InputError(f"weights must be 0 or more, and not all 0; they are {weights}")
    likelihood = np.array([_log_likelihood(sizes, cells, n, K, c) for c in concentrations])
    with np.errstate(divide="ignore"):  # a weight of 0 stays 0
        log_weights = likelihood + np.log(prior)
    posterior = np.exp(log_weights - log_weights.max())
    posterior /= posterior.sum()
    q = [unique_probability(n, N, K, concentration=c) for c in concentrations]
    return Mixture(posterior, float(min(1.0, posterior @ np.array(q))))


def _log_likelihood(
    sizes: npt.NDArray[np.int64], cells: npt.NDArray[np.int64], n: int, K: int, c: float
) -> float:
    """Log-likelihood of the cell sizes up to what does not depend on c.

    Written in 1 / c, so that c = infinity is no exception and large c loses no digits.
    """
    inverse = 1.0 / c
    members = np.concatenate([[0.0], np.cumsum(np.log1p(np.arange(sizes.max()) * inverse))])
    return float(cells @ members[sizes] - np.log(K + np.arange(n) * inverse).sum())
