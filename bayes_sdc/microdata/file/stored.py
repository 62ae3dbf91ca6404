"""A microdata file with all its columns as they came, and how to store such a file again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import FileForm
from bayes_sdc.io.tables import Dialect, encode, load
from bayes_sdc.io.text import damaged, find_columns
from bayes_sdc.microdata.file.formats import STATISTICAL

WRITTEN = (".dta", ".sav", ".zsav")  # of the statistical formats; SAS files are read only


@dataclass(frozen=True, eq=False)
class Stored:
    """All columns of a file, with what is needed to write some of them in the same form.

    Parameters
    ----------
    frame : DataFrame
        Values as the file has them: text from CSV, codes and not labels from Stata and SPSS.
    suffix : str
        Ending of the name of a file in this form.
    dialect : Dialect
        Of a CSV or Parquet file.
    described : object
        What pyreadstat says of a Stata or SPSS file: labels of columns and of values.
    """

    frame: pd.DataFrame
    suffix: str
    dialect: Dialect = field(default_factory=Dialect)
    described: Any = None

    def encode(self, frame: pd.DataFrame) -> bytes:
        """Return the bytes of a file with some of the columns, their labels included."""
        if self.described is None:
            return encode(frame, self.dialect)
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"file{self.suffix}"
            _write_statistical(path, frame, self.described)
            return path.read_bytes()


def load_stored(path: Path, wanted: Sequence[str], form: FileForm | None = None) -> Stored:
    """Read all columns of a file; ``wanted`` must be among them.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or is of a form that is not written.
    """
    suffix = path.suffix.lower()
    if suffix in STATISTICAL:
        if suffix not in WRITTEN:
            raise InputError(
                f"{path.name}: {suffix} files are read but not written; save the data as .sav, "
                ".dta, CSV or Parquet to treat them"
            )
        return _load_statistical(path, wanted)
    loaded = load(path, wanted, form)
    find_columns(loaded.source, list(loaded.frame.columns), wanted)
    return Stored(loaded.frame, loaded.dialect.suffix, loaded.dialect)


def _load_statistical(path: Path, wanted: Sequence[str]) -> Stored:
    try:
        import pyreadstat
    except ImportError as error:
        raise InputError(
            f"{path.name}: Stata, SPSS and SAS files need the extra 'statistical': "
            "pip install bayes-sdc[statistical]"
        ) from error
    suffix = path.suffix.lower()
    read: Callable[..., Any] = getattr(pyreadstat, STATISTICAL[suffix])
    try:
        frame, described = read(str(path), user_missing=True)
    # a damaged file makes pyreadstat raise errors that are documented nowhere
    except Exception as error:
        raise damaged(path.name, suffix, error) from error
    find_columns(path.name, described.column_names, wanted)
    return Stored(frame, suffix, described=described)


def _write_statistical(path: Path, frame: pd.DataFrame, described: Any) -> None:
    """Write columns with the labels that they had."""
    import pyreadstat

    names = [str(name) for name in frame.columns]
    of_columns = dict(zip(described.column_names, described.column_labels, strict=True))
    labels = {
        name: given for name, given in described.variable_value_labels.items() if name in names
    }
    common: dict[str, Any] = {
        "column_labels": [of_columns.get(name) or "" for name in names],
        "variable_value_labels": labels,
    }
    if path.suffix == ".dta":
        missing = {
            name: given for name, given in described.missing_user_values.items() if name in names
        }
        pyreadstat.write_dta(frame, str(path), missing_user_values=missing, **common)
        return
    ranges: dict[str, Any] = {
        name: [
            one["lo"] if one["lo"] == one["hi"] else {"lo": one["lo"], "hi": one["hi"]}
            for one in given
        ]
        for name, given in described.missing_ranges.items()
        if name in names
    }
    pyreadstat.write_sav(
        frame, str(path), missing_ranges=ranges, compress=path.suffix == ".zsav", **common
    )


def values_of_codes(column: pd.Series, codes: np.ndarray, levels: int) -> np.ndarray:
    """For each code the place of a record that has it: what stands there is how it is written.

    The first by its text, so that the order of records does not matter.

    Examples
    --------
    >>> values_of_codes(pd.Series(["b", "a", "b"]), np.array([1, 0, 1]), 2).tolist()
    [1, 0]
    """
    order = np.lexsort([text_places(column), codes])
    known = order[codes[order] >= 0]
    place = np.full(levels, -1, dtype=np.int64)
    place[codes[known[::-1]]] = known[::-1]
    return place


def text_places(column: pd.Series) -> np.ndarray:
    """Place of each value among those of a column, as text; a missing one comes first.

    Examples
    --------
    >>> text_places(pd.Series([2.0, None, 1.0])).tolist()
    [2, 0, 1]
    """
    known = column.notna().to_numpy()
    places = np.zeros(len(column), dtype=np.int64)
    if known.any():
        texts = column[known].astype(str).to_numpy(dtype=object)
        places[known] = 1 + np.unique(texts, return_inverse=True)[1]
    return places
