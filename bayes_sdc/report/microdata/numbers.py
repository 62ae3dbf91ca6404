"""Expected numbers of records as page one writes them."""

from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.microdata.posterior.sampling import Estimate

FEW = 10.0  # smaller numbers get a decimal
LEAST = 0.05  # a smaller number would be written as 0.0, and it is not 0


def count(value: float, *, like: float | None = None) -> str:
    """Write an expected number, with a decimal where it is small, and never as 0 what is not.

    Parameters
    ----------
    value : float
        The number.
    like : float, optional
        The number that decides on the decimal, the end of an interval say; by default itself.

    Examples
    --------
    >>> [count(value) for value in (0.0, 0.01, 2.34, 1234.5)]
    ['0', 'fewer than 0.05', '2.3', '1,234']
    """
    if 0.0 < value < LEAST:
        return f"fewer than {LEAST}"
    return f"{value:,.1f}" if 0.0 < (value if like is None else like) < FEW else f"{value:,.0f}"


def wide(estimate: Estimate | Estimate90) -> str:
    """Write an estimate with its interval.

    Examples
    --------
    >>> wide(Estimate(0.01, (0.0, 0.02), 0.0)), wide(Estimate(0.01, (0.0, 0.2), 0.0))
    ('fewer than 0.05', 'fewer than 0.05 (0.0 to 0.2)')
    >>> wide(Estimate(12.3, (9.1, 15.7), 0.0))
    '12 (9 to 16)'
    """
    low, high = estimate.interval
    if 0.0 < high < LEAST:
        return f"fewer than {LEAST}"
    ends = f"{low:,.1f} to {high:,.1f}" if 0.0 < high < FEW else f"{low:,.0f} to {high:,.0f}"
    return f"{count(estimate.value, like=high)} ({ends})"


def part(share: float) -> str:
    """Write a share in whole per cent, and never as 0 what is not.

    Examples
    --------
    >>> [part(share) for share in (0.0, 0.001, 0.256)]
    ['0%', 'less than 1 %', '26%']
    """
    return "less than 1 %" if 0.0 < share < 0.005 else f"{share:.0%}"
