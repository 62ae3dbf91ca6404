r"""Special uniques: scores from the minimal sample uniques of each record (SUDA).

A minimal sample unique of size k among m key variables, with sizes up to M, counts

``"elliot"``
    :math:`\prod_{i=k}^{\min(M, m-1)} (m - i)`, the number of orders in which variables can be added
    to it; 1 for k = m;
``"ihsn"``
    :math:`(2^{m-k} - 1) / \binom{m}{k}`, so that one that needs all keys counts 0.

The score of a record is the sum; a record without minimal sample unique has score 0. What a
variable contributes is the part of the score from sets that hold it; parts overlap, so they add up
to more than the score.

References
----------
M. J. Elliot, A. M. Manning, R. W. Ford, "A computational algorithm for handling the special uniques
problem", International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 10 (2002)
493-509. A. M. Manning, D. J. Haglin, J. A. Keane 2008, https://doi.org/10.1007/s10618-007-0078-6,
for a recursive search of the same sets. The second scale is that of the R package sdcMicro,
``suda2``.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numba
import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.combinations import MissingRule
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.special_uniques.forecast import (
    MEMORY,
    SudaForecast,
    check_size,
    forecast,
    prepare,
    refuse,
)
from bayes_sdc.microdata.special_uniques.minimal import WORTH_THREADS, Level, minimal_sample_uniques
from bayes_sdc.microdata.special_uniques.missing import rows_by_pattern
from bayes_sdc.microdata.special_uniques.row_bits import WORD
from bayes_sdc.results import Fact, Result

Scale = Literal["elliot", "ihsn"]
SCALES = {
    "elliot": "a set of size k of m keys counts (m-k)(m-k-1)... down to m-M, at least 1",
    "ihsn": "a set of size k of m keys counts (2^(m-k) - 1) / C(m, k)",
}


@dataclass(frozen=True, eq=False, repr=False)
class Suda(Result):
    """Scores, contributions and minimal sample uniques (MSUs) of a file.

    Made by :func:`bayes_sdc.suda`.

    Parameters
    ----------
    keys : tuple of str
        Key variables.
    max_size : int
        Largest size of an MSU that was looked for.
    scale : {"elliot", "ihsn"}
        What an MSU counts.
    missing : {"wildcard", "own", "conservative"}
        What a missing value matches.
    weights : Series
        What an MSU counts, by its size.
    scores : array of float, shape (record,)
        Score of each record, 0 or more.
    contributions : DataFrame
        For each record unique on all keys (index ``record``, place in the file) and key, the part
        of the score from MSUs that hold the key.
    sizes : DataFrame
        For each record unique on all keys the number of MSUs of each size.
    values : DataFrame
        For each key and value (None for a missing one) the records unique on all keys that have
        it, and the share of the total score from their MSUs that hold the key; without ``share``
        where there is no score.
    forecast : SudaForecast
        What the search was expected to need at most.
    """

    keys: tuple[str, ...]
    max_size: int
    scale: Scale
    missing: MissingRule
    weights: pd.Series
    scores: np.ndarray
    contributions: pd.DataFrame
    sizes: pd.DataFrame
    values: pd.DataFrame
    forecast: SudaForecast
    _levels: tuple[Level, ...]

    @property
    def variables(self) -> pd.Series:
        """Share of the total score from MSUs that hold each key; empty where there is no score."""
        total = float(self.scores.sum())
        shares = self.contributions.sum().rename("share")
        return shares / total if total else shares.iloc[:0]

    def minimal_sample_uniques(self, record: int | None = None) -> pd.DataFrame:
        """List minimal sample uniques, those of one record or all.

        Parameters
        ----------
        record : int, optional
            Place of the record in the file.

        Returns
        -------
        DataFrame
            Columns ``record``, ``size``, ``keys`` (names, with " + " between them) and ``score``;
            by record, then size. Confidential.

        Raises
        ------
        InputError
            If there is no such record.
        """
        records = self.contributions.index.to_numpy()
        if record is not None and not 0 <= record < len(self.scores):
            raise InputError(
                f"record {record} is not in the file; its {len(self.scores):,} records are "
                "numbered from 0"
            )
        chosen = None if record is None else np.flatnonzero(records == record)
        parts: list[tuple[np.ndarray, ...]] = []
        names: list[str] = []
        for level in self._levels:
            if chosen is None:
                place, row = _listed(level.bits, len(records))
            else:
                word, bit = chosen // WORD, np.uint64(1) << (chosen % WORD).astype(np.uint64)
                place = np.flatnonzero((level.bits[:, word] & bit != 0).any(axis=1))
                row = np.repeat(chosen, len(place))
            size = level.sets.shape[1]
            parts.append((records[row], np.full(len(row), size), place + len(names)))
            names += [" + ".join(self.keys[key] for key in members) for members in level.sets]
        joined = [np.concatenate(part) for part in zip(*parts, strict=True)] or [
            np.empty(0, int)
        ] * 3
        frame = pd.DataFrame(
            {
                "record": joined[0],
                "size": joined[1],
                "keys": pd.Categorical.from_codes(
                    joined[2], categories=pd.Index(names, dtype=object)
                ),
                "score": self.weights.reindex(joined[1]).to_numpy(),
            }
        )
        return frame.sort_values(["record", "size"], kind="stable", ignore_index=True)

    def _title(self) -> str:
        return f"SUDA of {len(self.scores):,} records, scale {self.scale!r}: confidential"

    def _facts(self) -> list[Fact]:
        found = self.sizes.sum()
        shares = self.variables.sort_values(ascending=False, kind="stable")
        undefined = [] if len(shares) else list(self.keys)
        return [
            ("uniques", f"{len(self.contributions):,}", f"on all {len(self.keys)} keys"),
            ("minimal uniques", f"{int(found.sum()):,}", f"of up to {self.max_size} keys"),
            ("largest score", f"{float(self.scores.max(initial=0.0)):.4g}", "of a record"),
            *((f"of size {size}", f"{int(n):,}", "minimal uniques") for size, n in found.items()),
            *((str(key), f"{share:.1%}", "of the score") for key, share in shares.items()),
            *((key, "undefined", "of the score") for key in undefined),
        ]


@checked
def suda(
    microdata: Microdata,
    *,
    max_size: int = 3,
    score: Scale = "elliot",
    memory: int = MEMORY,
) -> Suda:
    """Find all minimal sample uniques of up to ``max_size`` keys and score the records by them.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`; its rule about missing values holds on every set of keys.
    max_size : int
        Largest number of keys in a minimal sample unique, 1 or more; beyond the number of keys it
        means all sizes.
    score : {"elliot", "ihsn"}
        What a minimal sample unique counts.
    memory : int
        Bytes that the search may need at most.

    Returns
    -------
    Suda
        Scores of all records, contributions of the keys, and the minimal sample uniques.

    Raises
    ------
    InputError
        If an argument is out of range, or the search would need too many sets or too much memory.

    See Also
    --------
    bayes_sdc.suda_forecast, bayes_sdc.dis_suda

    References
    ----------
    Elliot, Manning and Ford (2002).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("fffm"), "job": list("ccds"), "town": list("aaba")})
    >>> found = suda(read_microdata(people, keys=["sex", "job", "town"]))
    >>> found.scores
    array([0., 0., 4., 4.])
    >>> found.minimal_sample_uniques(2)["keys"].tolist()
    ['job', 'town']
    """
    if score not in SCALES:
        raise InputError(f"score {score!r} is unknown; choose from {list(SCALES)}")
    size = check_size(max_size, len(microdata.keys))
    distinct, missing = prepare(microdata)
    expected = forecast(distinct, missing, size)
    refuse(expected, distinct, missing, size, memory)
    by_pattern = None
    if missing and microdata.missing != "own":
        by_pattern = rows_by_pattern(distinct, mutual=microdata.missing == "wildcard")
    levels = minimal_sample_uniques(distinct, size, by_pattern)
    weights = _weights(len(microdata.keys), size, score)
    scores, contributions, sizes = _add_up(levels, distinct.candidates, weights, microdata.keys)
    record = pd.Index(distinct.record[: distinct.candidates], name="record")
    all_scores = np.zeros(microdata.n)
    all_scores[record] = scores
    by_key = pd.DataFrame(contributions, index=record, columns=list(microdata.keys))
    return Suda(
        keys=microdata.keys,
        max_size=size,
        scale=score,
        missing=microdata.missing,
        weights=pd.Series(weights, pd.RangeIndex(1, size + 1, name="size"), name="score"),
        scores=all_scores,
        contributions=by_key,
        sizes=pd.DataFrame(sizes, index=record, columns=pd.RangeIndex(1, size + 1, name="size")),
        values=_by_value(microdata, by_key, float(all_scores.sum())),
        forecast=expected,
        _levels=tuple(levels),
    )


@checked
def suda_forecast(microdata: Microdata, *, max_size: int = 3) -> SudaForecast:
    """Say what `suda` would need, before it is run.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`.
    max_size : int
        Largest number of keys in a minimal sample unique.

    Returns
    -------
    SudaForecast
        Number of sets, time and memory.

    Raises
    ------
    InputError
        If ``max_size`` is no whole number from 1, or there are more than 64 keys.

    See Also
    --------
    bayes_sdc.suda

    References
    ----------
    Elliot, Manning and Ford (2002).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("fffm"), "job": list("ccds")})
    >>> suda_forecast(read_microdata(people, keys=["sex", "job"])).sets
    3
    """
    size = check_size(max_size, len(microdata.keys))
    return forecast(*prepare(microdata), size)


def _weights(keys: int, max_size: int, scale: Scale) -> np.ndarray:
    """What a minimal sample unique of each size from 1 counts; shape (size,)."""
    sizes = range(1, max_size + 1)
    if scale == "elliot":
        last = min(max_size, keys - 1)
        return np.array([float(math.prod(keys - i for i in range(k, last + 1))) for k in sizes])
    return np.array([(2 ** (keys - k) - 1) / math.comb(keys, k) for k in sizes])


def _add_up(
    levels: list[Level], candidates: int, weights: np.ndarray, keys: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score, contributions by key and number of sets by size, of each candidate."""
    contributions = np.zeros((candidates, len(keys)))
    sizes = np.zeros((candidates, len(weights)), np.int64)
    for level in levels:
        size = level.sets.shape[1]
        arguments = (level.sets, level.bits, weights[size - 1], contributions, sizes[:, size - 1])
        if candidates * len(level.sets) < WORTH_THREADS:
            _add(*arguments, 0, level.bits.shape[1])
        else:
            _add_in_parallel(*arguments)
    return sizes @ weights, contributions, sizes


@numba.njit(cache=True, nogil=True, parallel=True)
def _add_in_parallel(
    sets: np.ndarray,
    bits: np.ndarray,
    weight: float,
    contributions: np.ndarray,
    number: np.ndarray,
) -> None:
    # a thread owns eight words of records, one line of its cache
    for block in numba.prange((bits.shape[1] + 7) // 8):
        _add(sets, bits, weight, contributions, number, block * 8, block * 8 + 8)


@numba.njit(cache=True, nogil=True)
def _add(
    sets: np.ndarray,
    bits: np.ndarray,
    weight: float,
    contributions: np.ndarray,
    number: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Add the sets of one size to the candidates of some words."""
    for s in range(len(sets)):
        for w in range(start, min(stop, bits.shape[1])):
            word = bits[s, w]
            r = w * WORD
            while word != 0:
                if word & np.uint64(1):
                    number[r] += 1
                    for key in sets[s]:
                        contributions[r, key] += weight
                word >>= np.uint64(1)
                r += 1


def _by_value(microdata: Microdata, contributions: pd.DataFrame, total: float) -> pd.DataFrame:
    """Share of the total score by key and value."""
    record = contributions.index.to_numpy()
    parts = []
    for place, key in enumerate(microdata.keys):
        # a missing value comes first, as a value without label
        code = microdata.codes[record, place] + 1
        labels = [None, *microdata.labels[place]]
        number = np.bincount(code, minlength=len(labels))
        part = np.bincount(code, contributions[key].to_numpy(), minlength=len(labels))
        parts.append(
            pd.DataFrame(
                {
                    "key": key,
                    "value": pd.Series(labels, dtype=object),
                    "uniques": number,
                    "share": part / (total or 1.0),
                }
            )[number > 0]
        )
    joined = pd.concat(parts, ignore_index=True)
    return joined if total else joined.drop(columns="share")


def _listed(bits: np.ndarray, records: int) -> tuple[np.ndarray, np.ndarray]:
    """Set and record of each bit."""
    flags = np.unpackbits(bits.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    place, row = np.nonzero(flags[:, :records])
    return place, row
