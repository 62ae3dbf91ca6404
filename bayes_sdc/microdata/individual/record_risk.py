"""The individual risk of a whole file: of each record, combination and household, and its sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import VIOLATIONS, Microdata, Tally
from bayes_sdc.microdata.individual.closed_form import check_risks, household_risk, individual_risk
from bayes_sdc.results import Fact, Result

BULK = "risk above the larger of 0.1 and median + 2 x 1.4826 x median absolute deviation"


@dataclass(frozen=True, eq=False, repr=False)
class RecordRisk(Result):
    """Individual risk of a file; made by `record_risk`.

    Parameters
    ----------
    data : Microdata
        The file.
    sampling_fraction : float or None
        What F was estimated from, where it was not the weights.
    combinations : DataFrame
        Those of ``data`` with ``F`` (f over the sampling fraction, where one was given), ``p``, the
        probability to be in the sample, and ``risk``.
    household : array of float, shape (record,), or None
        Risk that a member of the record's household is re-identified.
    """

    data: Microdata
    sampling_fraction: float | None
    combinations: pd.DataFrame
    household: npt.NDArray[np.float64] | None

    @property
    def risk(self) -> npt.NDArray[np.float64]:
        """Individual risk of each record, shape (record,)."""
        return self.combinations["risk"].to_numpy()[self.data.combination]

    @property
    def expected(self) -> float:
        """Expected re-identifications: the sum of the risks of all records."""
        frame = self.combinations
        return float(frame["risk"].to_numpy() @ frame["records"].to_numpy())

    @property
    def global_risk(self) -> float:
        """Mean risk: the expected share of records that are re-identified."""
        return self.expected / self.data.n

    @property
    def tau1(self) -> float:
        """Expected sample uniques that are population uniques: the sum of p over f = 1."""
        return float(self.combinations["p"][self.combinations["f"] == 1].sum())

    @property
    def tau2(self) -> float:
        """Expected re-identifications among sample uniques: the sum of the risks over f = 1."""
        return float(self.combinations["risk"][self.combinations["f"] == 1].sum())

    @property
    def expected_by_household(self) -> float | None:
        """Expected persons in households with a re-identified member; None without households."""
        return None if self.household is None else float(np.sort(self.household).sum())

    @property
    def expected_households(self) -> float | None:
        """Expected households with a re-identified member; None without households."""
        frame = self.households()
        return None if frame is None else float(np.sort(frame["risk"]).sum())

    @property
    def bulk_limit(self) -> float:
        """Limit of the bulk of the risks; see :data:`BULK`."""
        return bulk_limit(self.risk)

    def above(self, limit: float) -> Tally:
        """Count records and combinations with risk above a limit (not equal to it)."""
        chosen = self.combinations["risk"] > limit
        return Tally(int(self.combinations["records"][chosen].sum()), int(chosen.sum()))

    def above_bulk(self) -> Tally:
        """Count records and combinations with risk above the bulk; see :data:`BULK`."""
        return self.above(self.bulk_limit)

    def records(self) -> pd.DataFrame:
        """Return one row per record, in the order of the file; confidential.

        Returns
        -------
        DataFrame
            ``record`` (position from 1), ``combination`` (position from 1), ``f``, ``F``, ``p``,
            ``risk`` and, with households, ``household`` (number from 1) and ``household_risk``.
        """
        place = self.data.combination
        frame = self.combinations
        columns = {
            "record": np.arange(1, self.data.n + 1),
            "combination": place + 1,
            **{name: frame[name].to_numpy()[place] for name in ("f", "F", "p", "risk")},
        }
        if self.data.household is not None and self.household is not None:
            columns["household"] = self.data.household + 1
            columns["household_risk"] = self.household
        return pd.DataFrame(columns)

    def households(self) -> pd.DataFrame | None:
        """Return one row per household, in the order of their ids; confidential.

        Returns
        -------
        DataFrame or None
            ``household`` (number from 1, as in `records`), ``id`` (as in the file; None for a
            person without one), ``first_record`` (position of its first member in the file, from
            1), ``persons``, and ``risk``, that at least one of them is re-identified, in [0, 1].
            None for a file without households.

        Examples
        --------
        >>> import pandas as pd
        >>> from bayes_sdc.microdata.file.read import read_microdata
        >>> people = pd.DataFrame({"sex": list("mmf"), "w": [10, 30, 5], "id": ["B2", "B2", "A1"]})
        >>> data = read_microdata(people, keys=["sex"], weight="w", household="id")
        >>> record_risk(data).households().round(4)
           household  id  first_record  persons    risk
        0          1  A1             3        1  0.4024
        1          2  B2             1        2  0.0867
        """
        if self.data.household is None or self.household is None:
            return None
        ids = self.data.household_ids
        number, first, persons = np.unique(
            self.data.household, return_index=True, return_counts=True
        )
        return pd.DataFrame(
            {
                "household": number + 1,
                "id": pd.Series([ids[i] if i < len(ids) else None for i in number], dtype=object),
                "first_record": first + 1,
                "persons": persons,
                "risk": self.household[first],
            }
        )

    def _title(self) -> str:
        return f"Individual risk of {self.data.source}: confidential"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = [
            ("expected re-identifications", f"{self.expected:,.1f}", f"of {self.data.n:,} records"),
            ("largest risk", f"{float(self.combinations['risk'].max()):.4f}", "of a record"),
            ("tau1", f"{self.tau1:,.1f}", "sample uniques that are population uniques"),
            ("tau2", f"{self.tau2:,.1f}", "correct matches among sample uniques"),
            ("above the bulk", f"{self.above_bulk().records:,}", f"risk > {self.bulk_limit:.4f}"),
        ]
        if (homes := self.expected_households) is not None:
            facts.append(("expected households", f"{homes:,.1f}", "with a re-identified member"))
        return facts


def bulk_limit(risk: npt.ArrayLike) -> float:
    """Compute the limit above which a risk stands out from the bulk of a file.

    Parameters
    ----------
    risk : array_like of float, shape (record,)
        In [0, 1].

    Returns
    -------
    float
        The larger of 0.1 and median + 2 x 1.4826 x median absolute deviation.

    Examples
    --------
    >>> bulk_limit([0.001, 0.002, 0.003, 0.9])
    0.1
    >>> round(bulk_limit([0.2, 0.3, 0.4]), 4)
    0.5965
    """
    risks = check_risks(risk)
    middle = float(np.median(risks))
    return max(0.1, middle + 2.0 * 1.4826 * float(np.median(np.abs(risks - middle))))


@checked
def record_risk(microdata: Microdata, *, sampling_fraction: float | None = None) -> RecordRisk:
    """Compute the exact individual risk of all records, and of households where there are any.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    sampling_fraction : float, optional
        n / N, above 0 and at most 1, for a file without weights: then F = f over it. Without
        weights and without a fraction the file counts as the whole population, the worst case.

    Returns
    -------
    RecordRisk
        Risks in [0, 1].

    Raises
    ------
    InputError
        If the fraction is out of range, or is given beside weights.

    See Also
    --------
    bayes_sdc.individual_risk, bayes_sdc.compare_key_sets, bayes_sdc.measure_microdata

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("mmf"), "age": list("223"), "w": [10, 30, 5]})
    >>> result = record_risk(read_microdata(people, keys=["sex", "age"], weight="w"))
    >>> result.risk.round(4).tolist(), round(result.expected, 4)
    ([0.0443, 0.0443, 0.4024], 0.491)
    """
    frame = microdata.combinations.copy()
    f = frame["f"].to_numpy()
    if sampling_fraction is not None:
        if microdata.weights is not None:
            raise InputError("the file has weights: a sampling fraction would contradict them")
        if not 0 < sampling_fraction <= 1:
            raise InputError(
                f"the sampling fraction must be above 0 and at most 1; it is {sampling_fraction!r}"
            )
        frame["F"] = f / sampling_fraction
    frame["p"] = np.minimum(1.0, f / frame["F"].to_numpy())
    frame["risk"] = individual_risk(f, frame["p"].to_numpy())
    household = None
    if microdata.household is not None:
        household = household_risk(
            frame["risk"].to_numpy()[microdata.combination], microdata.household
        )
    return RecordRisk(microdata, sampling_fraction, frame, household)


@checked
def compare_key_sets(
    microdata: Microdata,
    key_sets: Mapping[str, Sequence[str]],
    *,
    sampling_fraction: float | None = None,
) -> pd.DataFrame:
    """Compute the risk of the same records for several sets of key variables.

    Parameters
    ----------
    microdata : Microdata
        Read with all the keys that occur in a set.
    key_sets : mapping from name to key variables
        What different attackers could know.
    sampling_fraction : float, optional
        As for `record_risk`.

    Returns
    -------
    DataFrame
        One row per set: ``keys`` (their number), ``combinations``, for k = 2, 3, 5 the
        ``records_below_k`` and ``combinations_below_k``, ``expected`` re-identifications,
        ``global_risk``, ``tau1`` and ``tau2``.

    Raises
    ------
    InputError
        If there is no set, or a set names something that is not a key of ``data``.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.read_microdata

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("mmf"), "age": list("233")})
    >>> microdata = read_microdata(people, keys=["sex", "age"])
    >>> sets = {"neighbour": ["sex"], "colleague": ["sex", "age"]}
    >>> compare_key_sets(microdata, sets, sampling_fraction=0.1)["records_below_2"].to_dict()
    {'neighbour': 1, 'colleague': 3}
    """
    if not key_sets:
        raise InputError("key_sets must hold at least one set")
    rows = {}
    for name, keys in key_sets.items():
        part = microdata.select(keys)
        risk = record_risk(part, sampling_fraction=sampling_fraction)
        row: dict[str, float] = {"keys": len(part.keys), "combinations": len(part.combinations)}
        for k in VIOLATIONS:
            row[f"records_below_{k}"], row[f"combinations_below_{k}"] = part.k_violations(k)
        rows[name] = row | {
            "expected": risk.expected,
            "global_risk": risk.global_risk,
            "tau1": risk.tau1,
            "tau2": risk.tau2,
        }
    counts = [
        c for c in next(iter(rows.values())) if c not in ("expected", "global_risk", "tau1", "tau2")
    ]
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("key_set")
    return frame.astype(dict.fromkeys(counts, "int64"))
