"""The file that may leave: treated keys and named columns, in an order that tells nothing.

A column that is kept goes with the true values of the treated records: :mod:`.kept` judges what it
tells.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.io.text import find_columns
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.stored import text_places, values_of_codes
from bayes_sdc.microdata.treatment.kept import kept_checks
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.seeds import generator

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class ReleasedFile(NamedTuple):
    """What leaves of a treated file.

    Parameters
    ----------
    frame : DataFrame
        Columns in the order of the input; first ``dataset`` where there are several.
    checks : list of Check
        On the columns that were kept.
    left_out : tuple of str
        Columns of the input that are not released.
    """

    frame: pd.DataFrame
    checks: list[Check]
    left_out: tuple[str, ...]


def released_file(
    treatment: Treatment,
    source: pd.DataFrame,
    *,
    keep: Sequence[str] = (),
    given: Sequence[str] = (),
    keep_order: bool = False,
) -> ReleasedFile:
    """Write the treated keys into the columns of the input, and leave out what was not named.

    Parameters
    ----------
    treatment : Treatment
        From :func:`bayes_sdc.treat`.
    source : DataFrame
        All columns of the input, records in the same order.
    keep : sequence of str
        Further columns to release as they are. Households get new numbers.
    given : sequence of str
        Keys that no intruder is taken to know: they are released, so they are judged as the columns
        of ``keep``.
    keep_order : bool
        Leave the records in their order, which can tell who is who.

    Returns
    -------
    ReleasedFile
        Frame and checks.

    Raises
    ------
    InputError
        If a column is unknown, or a key.
    """
    data = treatment.data
    find_columns(data.source, list(source.columns), list(keep))
    check_kept(data, keep, datasets=treatment.datasets)
    columns = [name for name in source.columns if name in data.keys or name in keep]
    kept = source[columns].copy()
    if data.household_name in keep:
        # the name is that of a column where one alone tells the households
        kept[data.household_name] = _new_numbers(treatment, kept[data.household_name])
    frames = []
    for number in range(treatment.datasets):
        frame = kept.copy()
        for j, key in enumerate(data.keys):
            frame[key] = _released_column(treatment, number, j, source[key])
        if not keep_order:
            frame = frame.iloc[_shuffled(frame, treatment.seed, number)]
        if treatment.datasets > 1:
            frame.insert(0, "dataset", number + 1)
        frames.append(frame)
    judged = [*keep, *(name for name in given if name not in treatment.treated_keys)]
    checks = [*kept_checks(treatment, source, judged), _order_check(keep_order)]
    left_out = tuple(str(name) for name in source.columns if name not in columns)
    return ReleasedFile(pd.concat(frames, ignore_index=True), checks, left_out)


def check_kept(data: Microdata, keep: Sequence[str], *, datasets: int) -> None:
    """Refuse names of columns that are released anyway, or stand in the way.

    Raises
    ------
    InputError
        Naming the column.
    """
    homes = (data.household_name or "").split(" + ")
    for name in keep:
        if name in data.keys:
            raise InputError(f"--keep names {name!r}, which is a key and released anyway")
        if len(homes) > 1 and name in homes:
            raise InputError(
                f"--keep names {name!r}, one of the columns that tell households apart: they "
                "cannot be given new numbers one by one; make a single column of them"
            )
        if name != data.household_name and name in (data.household_name or "").split(" + "):
            raise InputError(
                f"--keep names {name!r}, which tells households together with another column; "
                "households get new numbers only where one column tells them"
            )
    if "dataset" in [*data.keys, *keep] and datasets > 1:
        raise InputError("a column is called 'dataset', which numbers the data sets; rename it")


def _released_column(treatment: Treatment, number: int, j: int, column: pd.Series) -> pd.Series:
    """Values of a key as the file writes them: a record's own where it was not changed.

    A suppressed value is blank; a missing one that was drawn is written as the file writes most of
    its missing values, or else it would show that it was drawn.
    """
    data = treatment.data
    before, after = data.codes[:, j], treatment.codes[number, :, j]
    place = values_of_codes(column, before, len(data.labels[j]))
    rows = np.where(after == before, np.arange(data.n), place[after])
    gone = (after < 0) & (before >= 0)
    usual = _usual_missing(column, before < 0)
    if treatment.method != "suppression" and usual is not None:
        rows[gone] = usual
        gone[:] = False
    released = column.iloc[rows].set_axis(column.index)
    return without_values(released, gone, text=_is_text(column)) if gone.any() else released


def _usual_missing(column: pd.Series, missing: Flags) -> int | None:
    """Place of a record that shows how most missing values of a column are written.

    >>> _usual_missing(pd.Series(["1", "", "-9", "-9"]), np.array([False, True, True, True]))
    2
    """
    if not missing.any():
        return None
    written = text_places(column)
    these = np.flatnonzero(missing)
    most = int(np.bincount(written[these]).argmax())
    return int(these[written[these] == most][0])


def _is_text(column: pd.Series) -> bool:
    """Tell whether an empty text stands for a missing value."""
    return pd.api.types.is_string_dtype(column) and not column.isna().any()


def without_values(column: pd.Series, gone: Flags, *, text: bool) -> pd.Series:
    """Take values out of a column; categories keep their order, and stay where none is left.

    >>> without_values(pd.Series(["a", "b"]), np.array([True, False]), text=True).tolist()
    ['', 'b']
    """
    kind = column.dtype.pyarrow_dtype if isinstance(column.dtype, pd.ArrowDtype) else None
    if kind is None or not pa.types.is_dictionary(kind):
        return column.mask(gone, "" if text else None)
    # pandas would number the categories by their first appearance
    stored = pa.Array.from_pandas(column)
    if isinstance(stored, pa.ChunkedArray):
        stored = stored.unify_dictionaries().combine_chunks()
    left = pc.if_else(pa.array(gone), pa.scalar(None, stored.indices.type), stored.indices)
    values = pa.DictionaryArray.from_arrays(left, stored.dictionary, ordered=kind.ordered)
    array = pd.arrays.ArrowExtensionArray(values)
    return pd.Series(array, index=column.index, name=column.name)


def _new_numbers(treatment: Treatment, column: pd.Series) -> pd.Series:
    """Number the households anew, at random; persons without an id keep none."""
    household = treatment.data.household
    assert household is not None  # noqa: S101 - the column has a name only where it was read
    homes = len(treatment.data.household_ids)
    lot = 1 + generator(treatment.seed, "numbers of households").permutation(homes)
    with_id = household < homes
    of_persons = np.append(lot, 0)[np.minimum(household, homes)]
    numbers = pd.Series(of_persons, index=column.index)
    if pd.api.types.is_string_dtype(column):
        return numbers.astype(str).where(with_id, "")
    return numbers.astype(float).where(with_id) if not with_id.all() else numbers


def _shuffled(frame: pd.DataFrame, seed: int, number: int) -> Integers:
    """Order records at random, from an order by what is released that forgets that of the input."""
    coded = [text_places(frame[name]) for name in frame.columns]
    sorted_ = np.lexsort(coded)
    lot = generator(seed, "order of records", str(number)).permutation(len(frame))
    return np.asarray(sorted_[lot], dtype=np.int64)


def _order_check(keep_order: bool) -> Check:
    return Check(
        "order of records",
        "look" if keep_order else "pass",
        "records are in the order of the input: anyone who has it, or such a file, can "
        "tell who is who"
        if keep_order
        else "records are in random order",
        key="treatment_order",
    )
