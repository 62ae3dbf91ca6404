"""Numbers that a column holds, however they are written."""

import re
import warnings

import numpy as np
import numpy.typing as npt
import pandas as pd

DATES = (
    "ISO8601", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y",
    "%b %d, %Y", "%B %d, %Y", "%H:%M", "%H:%M:%S",
)  # fmt: skip
MOSTLY = 0.25  # share of values that must be numbers
DIGIT = re.compile(r"\d")
PLAIN = re.compile(r"[\s'%$€£]")


def numbers_in(column: pd.Series) -> npt.NDArray[np.float64]:
    """Return numbers, dates as days, and truth values; missing where there is none.

    Examples
    --------
    >>> numbers_in(pd.Series(["7 %", "1e3", "x", None])).tolist()
    [7.0, 1000.0, nan, nan]
    >>> numbers_in(pd.Series(["2020-01-01", "2020-01-08"])).tolist()
    [18262.0, 18269.0]
    """
    places, distinct = pd.factorize(column.astype(object), use_na_sentinel=False)
    return _parsed(pd.Series(["" if value is None else str(value) for value in distinct]))[places]


def _parsed(text: pd.Series) -> npt.NDArray[np.float64]:
    """Numbers of different texts."""
    plain = text.str.replace(PLAIN, "", regex=True).replace({"True": "1", "False": "0"})
    for written in (plain, plain.str.replace(",", "."), plain.str.replace(",", "")):
        values = pd.to_numeric(written, errors="coerce").to_numpy(np.float64)
        values = np.where(np.isfinite(values), values, np.nan)
        if np.isfinite(values).mean() >= MOSTLY:
            return values
    if text.str.contains(DIGIT).mean() < MOSTLY:  # names, not dates
        return np.full(len(text), np.nan)
    for form in DATES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            days = pd.to_datetime(text, format=form, errors="coerce", utc=True)
        if days.notna().mean() >= MOSTLY:
            zero = pd.Timestamp("1970-01-01", tz="UTC")
            return np.asarray((days - zero) / pd.Timedelta(days=1), np.float64)
    return np.full(len(text), np.nan)


def last_digit(values: npt.NDArray[np.float64]) -> float:
    """Return what the values are rounded to: 1, 0.1 and so on, or 0 where that is not seen.

    Examples
    --------
    >>> last_digit(np.array([0.25, 3.0])), last_digit(np.array([np.pi / 1000]))
    (0.01, 0.0)
    """
    for places in range(7):
        scaled = values * 10.0**places
        if (np.abs(scaled - np.rint(scaled)) <= 1e-6 * np.maximum(1.0, np.abs(scaled))).all():
            return float(10.0**-places)
    return 0.0
