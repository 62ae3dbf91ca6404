"""The thresholds below which the IRS does not show a county-to-county flow, by years.

A dated policy: a rule holds for files of the years from ``first`` to ``last``, both included.
"""

from dataclasses import dataclass

from bayes_sdc.errors import InputError


@dataclass(frozen=True)
class Threshold:
    """A rule on how many returns a county-to-county flow must have to be shown.

    Made by :func:`bayes_sdc.read_irs_flows`, as ``threshold``.

    Parameters
    ----------
    returns : int
        A flow of fewer returns is not shown (a flow of exactly as many is).
    adds_up : bool
        Whether published and other flows of a county add up to its totals. If not, other flows of
        too few returns are in the row of another county of the state, and some returns are in
        totals alone.
    first, last : str or None
        Years of the first and the last file it holds for; None if it is still in force.
    source : str
        Where the rule is stated.
    """

    returns: int
    adds_up: bool
    first: str
    last: str | None
    source: str

    def __str__(self) -> str:
        until = f"to {self.last}" if self.last else "on"
        return f"fewer than {self.returns} returns are not shown (from {self.first} {until})"


THRESHOLDS = (
    Threshold(
        returns=10,
        adds_up=True,
        first="1990-1991",
        last="2012-2013",
        source="IRS SOI, documentation for the 2005-2006 county-to-county migration flows, B and D",
    ),
    Threshold(
        returns=20,
        adds_up=False,
        first="2013-2014",
        last=None,
        source="IRS SOI, Migration Data Users Guide 2017-2018, section D",
    ),
)


def threshold_of(years: str) -> Threshold:
    """Return the rule that held for a file.

    Parameters
    ----------
    years
        The two years of the file, as in ``"2014-2015"``.

    Returns
    -------
    Threshold

    Raises
    ------
    InputError
        If ``years`` is not two successive years, or lies before the first rule.

    Examples
    --------
    >>> threshold_of("2012-2013").returns, threshold_of("2013-2014").returns
    (10, 20)
    >>> print(threshold_of("2014-2015"))
    fewer than 20 returns are not shown (from 2013-2014 on)
    """
    first, _, second = years.partition("-")
    successive = first.isdecimal() and second.isdecimal() and int(second) == int(first) + 1
    if not successive or len(years) != len("2014-2015"):
        raise InputError(f"years must be two successive years such as '2014-2015', got {years!r}")
    for rule in THRESHOLDS:
        if rule.first <= years and (rule.last is None or years <= rule.last):
            return rule
    raise InputError(
        f"no threshold is known for {years}; the first rule is for {THRESHOLDS[0].first}"
    )
