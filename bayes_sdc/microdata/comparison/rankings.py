"""How methods rank the sample uniques: where they agree, and where they do not."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.additive import Lancaster
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.loglinear.risk import LoglinearRisk
from bayes_sdc.microdata.special_uniques.dis_suda import DisSuda


def by_record(
    microdata: Microdata,
    classes: LatentClassRisk,
    poisson: LoglinearRisk | None,
    additive: Lancaster | None,
    validated: Lancaster | None,
    special: DisSuda | None,
) -> pd.DataFrame:
    """Risk of every sample unique, one column per method."""
    record = pd.Index(np.flatnonzero(microdata.f == 1), name="record")
    columns: dict[str, Any] = {"latent classes": classes.records["P_unique"]}
    if poisson is not None:
        columns["log-linear"] = poisson.records["P_unique"]
    if additive is not None:
        columns |= {"independence": additive.risk[0.0], "Lancaster": additive.risk[1.0]}
    if validated is not None:
        columns["Lancaster, cross-validated"] = validated.risk.iloc[:, 0]
    if special is not None:
        columns |= {"DIS-SUDA": special.risk[record], "SUDA score": special.suda.scores[record]}
    return pd.DataFrame(columns, index=record)


def average_ranks(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs.

    Examples
    --------
    >>> average_ranks([0.5, 0.1, 0.5]).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, number = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    return np.asarray((last - 0.5 * (number - 1))[place], dtype=np.float64)


def agreement_of(records: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rank correlations; undefined for a column without differences."""
    names = records.columns
    if not len(names):
        return pd.DataFrame(index=names, columns=names, dtype=float)
    ranks = np.array([average_ranks(records[name]) for name in names])
    centred = ranks - ranks.mean(axis=1, keepdims=True) if records.shape[0] else ranks
    length = np.sqrt((centred**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = centred @ centred.T / np.outer(length, length)
    return pd.DataFrame(matrix.clip(-1.0, 1.0), index=names, columns=names)


def disagreements_of(records: pd.DataFrame, microdata: Microdata, most: int) -> pd.DataFrame:
    """Records by the difference between their places in two rankings."""
    n, index = len(records), records.index
    below = pd.DataFrame(
        {name: (average_ranks(records[name]) - 0.5) / max(n, 1) for name in records.columns},
        index=index,
    )
    values = below.to_numpy()
    difference = values.max(axis=1, initial=0.0) - values.min(axis=1, initial=1.0)
    names = list(records.columns)
    columns: dict[tuple[str, str], Any] = {}
    for place, (key, labels) in enumerate(zip(microdata.keys, microdata.labels, strict=True)):
        codes = microdata.codes[index, place]
        columns["key", key] = [None if code < 0 else labels[code] for code in codes]
    columns["disagreement", "difference"] = difference
    columns["disagreement", "highest"] = [names[i] for i in values.argmax(axis=1)]
    columns["disagreement", "lowest"] = [names[i] for i in values.argmin(axis=1)]
    columns |= {("share below", name): below[name] for name in names}
    frame = pd.DataFrame(columns, index=index)
    return frame.iloc[np.argsort(-difference, kind="stable")[:most]]
