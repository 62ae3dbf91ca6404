"""Keys that all members of a household share: what one member shows tells it of all."""

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.clusters import agreement

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def shared_keys(data: Microdata) -> Flags:
    """Tell which keys are equal for all members of every household, shape (key,).

    What is missing is left aside unless it is a category of its own: a member whose value is known
    tells it. None without households of two or more whose values are known.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"home": list("aabb"), "region": list("nnss"), "sex": list("mfmm")})
    >>> shared_keys(read_microdata(people, keys=["region", "sex"], household="home")).tolist()
    [True, False]
    """
    return np.asarray(agreement(data) == 1.0)


def filled_in(data: Microdata) -> Codes:
    """Codes as somebody reads them who takes what is missing from other members of the household.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"home": list("aab"), "region": ["n", "n", "s"], "sex": list("mfm")})
    >>> people.loc[3] = ["b", None, None]
    >>> data = read_microdata(people, keys=["region", "sex"], household="home")
    >>> filled_in(data)[3].tolist(), data.labels
    ([1, -1], (('n', 's'), ('f', 'm')))
    """
    codes = data.codes.copy()
    shared = shared_keys(data)
    if data.household is None or not shared.any():
        return codes
    _, home = np.unique(data.household, return_inverse=True)
    for j in np.flatnonzero(shared):
        last = np.full(int(home.max()) + 1, -2, dtype=np.int64)
        np.maximum.at(last, home, codes[:, j])
        codes[:, j] = last[home]
    return codes


def spread_over_households(data: Microdata, hidden: Flags) -> Flags:
    """Hide a shared key of all members where it is hidden of one; what is missing is never hidden.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"home": list("aabb"), "region": list("nnss"), "sex": list("mfmm")})
    >>> data = read_microdata(people, keys=["region", "sex"], household="home")
    >>> spread_over_households(data, np.array([[True, True]] + 3 * [[False, False]])).tolist()
    [[True, True], [True, False], [False, False], [False, False]]
    """
    wider = widened(data, shared_keys(data), hidden)
    missing = (data.codes < 0) & (data.missing != "own")
    return np.asarray(wider & ~missing)


def widened(data: Microdata, shared: Flags, hidden: Flags) -> Flags:
    """Flag a shared key for all members where it is flagged for one, known or not."""
    wider = hidden.copy()
    for key in np.flatnonzero(shared & hidden.any(axis=0)):
        assert data.household is not None  # noqa: S101 - else no key is shared
        wider[:, key] |= np.isin(data.household, data.household[hidden[:, key]])
    return wider
