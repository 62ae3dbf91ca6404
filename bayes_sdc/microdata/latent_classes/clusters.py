"""What a sample of whole households is, beside one of persons: how much of it comes in clusters."""

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata

#: Share of the households with several members that agree in a key, from which they share it.
AGREE_IN = 0.9

Integers = npt.NDArray[np.int64]


def households_with(data: Microdata, row: Integers, records: Integers) -> Integers:
    """Count the households that have each combination; the records, where there are none.

    Members of a household who are alike come into the sample together. Counted one by one they
    would make combinations look more common than they are, and sample uniques less rare: of 884
    people of whom 7 % have a member like themselves, tau1 was 0.64 of the truth, and is 0.76; in
    surveys drawn like the example file 0.88 on average, and is 0.95.

    Parameters
    ----------
    data : Microdata
        The file.
    row : array of int, shape (combination of the file,)
        Row of the sampler for each combination of the file.
    records : array of int, shape (combination,)
        Records by row of the sampler.
    """
    if data.household is None:
        return records
    pairs = np.stack([row[data.combination], np.asarray(data.household, dtype=np.int64)])
    different = np.unique(pairs, axis=1)
    return np.bincount(different[0], minlength=len(records)).astype(np.int64)


def shared_keys(data: Microdata) -> int:
    """Count the keys in which nearly all households of several members agree; 0 without any.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"region": list("aabb"), "age": list("1234"), "home": list("1122")})
    >>> shared_keys(read_microdata(people, keys=["region", "age"], household="home"))
    1
    """
    if data.household is None:
        return 0
    home = np.unique(np.asarray(data.household), return_inverse=True)[1]
    several = np.bincount(home) > 1
    if not several.any():
        return 0
    found = 0
    for codes in data.codes.T:
        most = np.full(len(several), -2, dtype=np.int64)
        least = np.full(len(several), np.iinfo(np.int64).max, dtype=np.int64)
        np.maximum.at(most, home, codes)
        np.minimum.at(least, home, codes)
        found += bool((most == least)[several].mean() >= AGREE_IN)
    return found
