"""How long the choice of a log-linear model takes, roughly."""

import math
from itertools import combinations

import numpy as np

from bayes_sdc.microdata.file.combinations import codes_of
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.loglinear.selection import MOST_PAIRS
from bayes_sdc.microdata.loglinear.table import WHOLE, draws_for

STEPS = 8  # of Newton, in a fit that begins from the one before
OF_A_PRODUCT = 3e-9  # seconds, for a cell and two of its effects
OF_A_SOLUTION = 8e-12  # seconds, by the cube of the effects; half the fits fill the matrix


def loglinear_seconds(microdata: Microdata) -> float:
    """Tell how long :func:`bayes_sdc.loglinear_risk` takes at most, where all pairs pay.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.

    Returns
    -------
    float
        Seconds of one thread.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("ffffm"), "job": list("cccdd")})
    >>> loglinear_seconds(read_microdata(people, keys=["sex", "job"])) < 1.0
    True
    """
    codes = codes_of(microdata.combinations)
    levels = [len(np.unique(column)) for column in codes.T]
    pairs = sorted((a * b for a, b in combinations(levels, 2)), reverse=True)[:MOST_PAIRS]
    effects = 1 + sum(levels) + sum(pairs)
    possible = math.prod(levels)
    cells = possible if possible <= WHOLE else len(codes) + draws_for(microdata.n)
    product = cells * (1 + len(levels) + len(pairs)) ** 2 * OF_A_PRODUCT
    return (len(pairs) + 1) * STEPS * (product + effects**3 * OF_A_SOLUTION)
