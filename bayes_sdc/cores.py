"""How many threads to use."""

import os

import numpy as np

from bayes_sdc.errors import InputError


def threads(cores: int | None) -> int:
    """Return the number asked for, or as many as the machine has.

    Parameters
    ----------
    cores : int or None
        1 or more; None for all.

    Raises
    ------
    InputError
        If the number is not a whole one of at least 1.

    Examples
    --------
    >>> threads(2)
    2
    """
    if cores is None:
        return os.cpu_count() or 1
    if isinstance(cores, bool) or not isinstance(cores, int | np.integer) or cores < 1:
        raise InputError(f"cores must be a whole number, 1 or more; it is {cores!r}")
    return int(cores)
