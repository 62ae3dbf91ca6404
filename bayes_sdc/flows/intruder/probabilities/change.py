"""A mean over cells before and after the release, and how it is written."""

from typing import NamedTuple

from bayes_sdc.results import or_undefined


class Change(NamedTuple):
    """A mean over cells before and after the release; None where it is undefined.

    Made by :func:`bayes_sdc.intruder_gain`.

    Parameters
    ----------
    before, after : float or None
        The mean before any release and after this one.
    gain : float or None
        Their difference.
    interval : tuple of float or None
        95 % interval of the gain, the cells taken as independent.
    monte_carlo_error : float or None
        Standard error of the gain, by comparing chains; None from a single one.
    """

    before: float | None
    after: float | None
    gain: float | None
    interval: tuple[float, float] | None  # 95 % of the gain, the cells taken as independent
    monte_carlo_error: float | None  # of the gain, by comparing chains; None from a single one


NO_CHANGE = Change(None, None, None, None, None)


def percents(change: Change) -> str:
    """Write a change of a share: before, after, and the gain in percentage points."""
    if change.before is None or change.after is None or change.gain is None:
        return "undefined (no such cell)"
    error = _error(change, 100.0, ".2f")
    return f"{change.before:.1%} before, {change.after:.1%} after: {points(change.gain)}{error}"


def points(gain: float) -> str:
    """Write a difference of shares in percentage points.

    Examples
    --------
    >>> points(0.12), points(-0.00001)
    ('+12.0 points', '+0.0 points')
    """
    return f"{_no_minus_zero(100.0 * gain, 1):+.1f} points"


def before_and_after(change: Change) -> str:
    """Write a share before and after."""
    return f"{or_undefined(change.before, '.1%')} → {or_undefined(change.after, '.1%')}"


def bits_gained(change: Change) -> str:
    """Write a gain in bits."""
    return (
        "bits undefined" if change.gain is None else f"{_no_minus_zero(change.gain, 3):+.3f} bits"
    )


def bits_in_words(change: Change) -> str:
    """Write a change of the mean log2 probability."""
    if change.before is None or change.after is None or change.gain is None:
        return "undefined (the prior rules out a true count)"
    error = _error(change, 1.0, ".4f")
    gain = _no_minus_zero(change.gain, 3)
    return f"{change.before:.3f} before, {change.after:.3f} after: {gain:+.3f} bits{error}"


def _error(change: Change, factor: float, form: str) -> str:
    """Write interval and Monte Carlo error of a gain."""
    if change.interval is None:
        return ""
    low, high = (factor * end for end in change.interval)
    error = change.monte_carlo_error
    known = "unknown (one chain)" if error is None else f"{factor * error:{form}}"
    return f" (95 % interval {low:+.2f} to {high:+.2f}, Monte Carlo error {known})"


def _no_minus_zero(value: float, digits: int) -> float:
    return round(value, digits) + 0.0
