"""Shares as the public reads them: of many cells, with a little noise, in whole per cent.

Rounding alone does not hide a cell. For anyone who knows of every cell but one whether it was
found, two numbers of found cells are possible. Where a rounding boundary lies between their shares,
the printed per cent tells which one is right; coarser rounding only makes this rarer. So noise is
added to the number of cells first, and then no printed share can tell the two apart for certain.
"""

import math

import pandas as pd

from bayes_sdc.seeds import generator

PUBLIC_CELLS = 500  # with fewer cells the noise would be as large as the share
ODDS = 0.1  # bound on the log odds between two neighbouring numbers, given one printed share
NEARLY = 0.995  # a share that rounds to 0 or 100 % must not be stated of every cell


class PublicShares:
    """Shares of one report, each moved once and for all by its name.

    A number that is printed twice, or for several numbers of data sets, has one name: noise that is
    drawn again could be averaged away.

    Parameters
    ----------
    seed : int
        That of the run, which is confidential.

    References
    ----------
    A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms",
    SIAM Journal on Computing 41, 2012, doi:10.1137/09076828X: the two-sided geometric noise.

    Examples
    --------
    >>> shares = PublicShares(7)
    >>> shares.percent(0.25, 70_000, "R_all"), shares.percent(0.25, 499, "R_all")
    ('25%', '')
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def moved(self, share: float, units: float, name: str) -> float:
        """Return a share of so many units with noise, from 0 to 1; the same for the same name.

        Parameters
        ----------
        share : float
            0 to 1; NaN stays NaN.
        units : float
            A change of one of them moves the share by at most one over their number.
        name : str
            Of what is printed.
        """
        return share if math.isnan(share) else min(max(share + self.noise(units, name), 0.0), 1.0)

    def moved_all(self, values: pd.Series, units: float, name: str) -> pd.Series:
        """Return several numbers of one name, each 0 or more, moved by the same noise."""
        return (values + self.noise(units, name)).clip(lower=0.0)

    def percent(self, share: float | None, cells: int, name: str) -> str:
        """Return a share in whole per cent, or nothing where it is undefined or of few cells.

        Examples
        --------
        >>> PublicShares(7).percent(1.0, 70_000, "changed")
        'over 99%'
        """
        if share is None or math.isnan(share) or cells < PUBLIC_CELLS:
            return ""
        told = self.moved(share, cells, name)
        ends = {"over 99%": told >= NEARLY, "under 1%": told < 1.0 - NEARLY}
        return next((words for words, end in ends.items() if end), f"{told:.0%}")

    def noise(self, units: float, name: str) -> float:
        """Return the noise of a share of so many units: two-sided geometric, over their number."""
        rng = generator(self._seed, "public shares", name)
        up, down = rng.geometric(-math.expm1(-ODDS), 2)
        return float(up - down) / units


def usual_noise(units: int) -> str:
    """Say how far the noise moves a share of so many units in 19 of 20 reports.

    Examples
    --------
    >>> usual_noise(812), usual_noise(70_000)
    ('4 percentage points', '1 percentage point')
    """
    tail = 0.05 * (1.0 + math.exp(-ODDS)) / 2.0
    points = math.ceil(100.0 * math.ceil(-math.log(tail) / ODDS) / units)
    return "1 percentage point" if points == 1 else f"{points} percentage points"
