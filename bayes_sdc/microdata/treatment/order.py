"""Records in an order by what they hold, so that no answer depends on the order of the file.

Draws are dealt to records in the order of what the treatment knows of them: household, combination
of keys, weight. Records that are equal in these are told apart by the other columns of the file,
which may be released beside the draws.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.stored import text_places
from bayes_sdc.microdata.treatment.intruder import MatchRisk
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.microdata.treatment.synthesis import content, order_of_content

Integers = npt.NDArray[np.int64]


def in_order(data: Microdata, order: Integers) -> Microdata:
    """Return the records in another order; persons without a household id are numbered anew.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> data = read_microdata(pd.DataFrame({"age": ["30", "20"]}), keys=["age"])
    >>> in_order(data, np.array([1, 0])).codes.tolist()
    [[0], [1]]
    """
    household = data.household
    if household is not None:
        household = household[order].copy()
        alone = household >= len(data.household_ids)
        household[alone] = len(data.household_ids) + np.arange(int(alone.sum()))
    return replace(
        data,
        codes=np.ascontiguousarray(data.codes[order]),
        combination=data.combination[order],
        weights=None if data.weights is None else data.weights[order],
        household=household,
    )


def dealt_by_columns(treatment: Treatment, source: pd.DataFrame) -> Treatment:
    """Deal what was drawn for records that the treatment cannot tell apart by their other columns.

    They were dealt in the order of the file. Which of these records got which draw is chance; with
    this it is the same chance for any order of the file.

    Parameters
    ----------
    treatment : Treatment
        From :func:`bayes_sdc.treat`.
    source : DataFrame
        All columns of the input, records in the same order.

    Returns
    -------
    Treatment
        Records that are equal in all columns are left as they were.
    """
    data = treatment.data
    by_file = order_of_content(data, np.arange(data.n))
    same = np.ones(max(data.n - 1, 0), dtype=np.bool_)
    for part in content(data):
        same &= part[by_file][1:] == part[by_file][:-1]
    if not same.any():
        return treatment
    group = np.empty(data.n, dtype=np.int64)
    group[by_file] = np.concatenate([[0], np.cumsum(~same)])
    by_columns = np.lexsort([*(text_places(source[name]) for name in source.columns), group])
    taken = np.empty(data.n, dtype=np.int64)
    taken[by_columns] = by_file
    return replace(
        treatment,
        codes=treatment.codes[:, taken],
        hidden=treatment.hidden[taken],
        after=_taken(treatment.after, taken),
        strongest=_taken(treatment.strongest, taken),
    )


def _taken(risk: MatchRisk, records: Integers) -> MatchRisk:
    frame = risk.records
    return replace(risk, records=frame.iloc[records].set_axis(frame.index))
