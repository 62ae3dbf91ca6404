"""Keys that the members of a household share: what one member shows tells it of all.

A member who differs in one household takes little of that away in the others: a key is shared where
nearly all households agree in it, and more of them than chance makes agree. One in which all of
them agree is shared even by chance: in this file a member does show it of another.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.clusters import AGREE_IN, agreement

#: Of the households that would disagree by chance; of a key that most people have in one level
#: nearly all households agree, and no member tells it of another.
BY_CHANCE = 0.5

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Members(NamedTuple):
    """What the members of each household show of one key.

    Parameters
    ----------
    home : array of int, shape (record,)
        Number of the household of each record.
    known : array of int, shape (household,)
        Members who show a value.
    agree : array of bool, shape (household,)
        Whether these show one value only.
    most : array of int, shape (household,)
        The value that most members show, the higher of two; -1 where none shows one.
    """

    home: Integers
    known: Integers
    agree: Flags
    most: Integers


def members_of(data: Microdata, key: int) -> Members:
    """Look at one key in all households; each person is one where there are none."""
    every = np.arange(data.n) if data.household is None else data.household
    home = np.unique(every, return_inverse=True)[1]
    codes = data.codes[:, key].astype(np.int64)
    told = np.ones(data.n, dtype=np.bool_) if data.missing == "own" else codes >= 0
    known = np.bincount(home[told], minlength=int(home.max()) + 1)
    width = len(data.labels[key]) + 1
    pair, times = np.unique(home[told] * width + codes[told] + 1, return_counts=True)
    of, level = np.divmod(pair, width)
    agree = np.bincount(of, minlength=len(known)) < 2
    most = np.full(len(known), -1, dtype=np.int64)
    order = np.lexsort([level, times])  # the last one written stands
    most[of[order]] = level[order] - 1
    return Members(home, known, agree, most)


def shared_keys(data: Microdata) -> Flags:
    """Tell which keys are equal for all members in nearly all households, shape (key,).

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
    share = agreement(data)
    found = np.asarray(share == 1.0)
    for key in np.flatnonzero((share >= AGREE_IN) & ~found).tolist():
        members = members_of(data, key)
        several = members.known > 1
        found[key] = (several & ~members.agree).sum() <= BY_CHANCE * _by_chance(data, key, members)
    return found


def _by_chance(data: Microdata, key: int, members: Members) -> float:
    """Households of several that would disagree if their members had nothing in common."""
    codes = data.codes[:, key] + 1 if data.missing == "own" else data.codes[:, key]
    counts = np.bincount(codes[codes >= 0])
    shares = counts / counts.sum()
    sizes, number = np.unique(members.known[members.known > 1], return_counts=True)
    return float(
        sum(
            count * (1.0 - float(np.sum(shares**size)))
            for size, count in zip(sizes.tolist(), number.tolist(), strict=True)
        )
    )


def agreeing(data: Microdata) -> Flags:
    """Flag what stands in a household whose members show one value of the key, shape of codes."""
    found = [members_of(data, key) for key in range(len(data.keys))]
    return np.stack([one.agree[one.home] for one in found], axis=1)


def filled_in(data: Microdata) -> Codes:
    """Codes as somebody reads them who takes what is missing from other members of the household.

    Where these differ, from most of them.

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
    if data.household is None:
        return codes
    for key in np.flatnonzero(shared_keys(data)):
        members = members_of(data, int(key))
        lacks = codes[:, key] < 0
        codes[lacks, key] = members.most[members.home[lacks]]
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
