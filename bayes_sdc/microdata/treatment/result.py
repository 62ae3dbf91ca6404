"""A treated file: what is released, what was changed, the risk before and after."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.treatment.intruder import KNOWLEDGE, KNOWS, MatchRisk
from bayes_sdc.results import Fact, Result

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

Method = Literal["synthesis", "full-synthesis", "suppression", "pram", "recoding"]
METHODS = {
    "synthesis": "new values of some keys of some records, drawn given what stays",
    "full-synthesis": "new values of all keys of all records, drawn from the model",
    "suppression": "single values set missing, the fewest or the least important",
    "pram": "values changed at random with known probabilities that keep the expected shares",
    "recoding": "coarser levels of the named keys, and nothing else",
}


@dataclass(frozen=True, eq=False, repr=False)
class Treatment(Result):
    """A treated file with its risk before and after; made by :func:`bayes_sdc.treat`. Confidential.

    Parameters
    ----------
    data : Microdata
        The untreated file.
    method : str
        One of the treatments.
    codes : array of int32, shape (dataset, record, key)
        Released codes in the order of the file: places in ``data.labels``, -1 for missing.
    hidden : array of bool, shape (record, key)
        Values that were suppressed or drawn anew; a drawn one can be equal to the true one.
    before, after : MatchRisk
        Risk by the intruder that was asked for.
    strongest : MatchRisk
        Risk afterwards by an intruder who knows which records were treated. More on the whole, but
        not for every record: where a drawn value happens to be true, an intruder who believes it is
        right.
    checks : list of Check
        On the model, and on the target where one was given.
    seed : int
        Everything random follows from it.
    target_risk : float or None
        As given.
    notes : tuple of str
        What was assumed, and what had no effect.
    recoded : array of bool, shape (record, key), or None
        Values whose level was made coarser before the treatment, where ``before`` is not the risk
        of ``data`` but of the file as it came; None where nothing was recoded.
    before_recoded : bool
        Whether ``before`` is the risk of the recoded file all the same.
    """

    data: Microdata
    method: Method
    codes: Codes
    hidden: Flags
    before: MatchRisk
    after: MatchRisk
    strongest: MatchRisk
    checks: list[Check]
    seed: int
    target_risk: float | None = None
    notes: tuple[str, ...] = ()
    recoded: Flags | None = None
    before_recoded: bool = False

    @property
    def datasets(self) -> int:
        """Number of released data sets."""
        return len(self.codes)

    @property
    def only_recoded(self) -> bool:
        """Whether nothing was done but to make levels coarser: no value is hidden or drawn."""
        return self.method == "recoding"

    @property
    def treated(self) -> Flags:
        """Whether some value of a record was treated, shape (record,)."""
        found: Flags = self.hidden.any(axis=1)
        return found

    @property
    def changed(self) -> Flags:
        """Whether some value of a record was treated or made coarser, shape (record,)."""
        return self.treated if self.recoded is None else self.treated | self.recoded.any(axis=1)

    @property
    def recoded_keys(self) -> tuple[str, ...]:
        """Keys whose levels were made coarser before the treatment."""
        if self.recoded is None:
            return ()
        return tuple(
            key for key, one in zip(self.data.keys, self.recoded.any(axis=0), strict=True) if one
        )

    @property
    def treated_keys(self) -> tuple[str, ...]:
        """Keys that were treated in some record."""
        return tuple(
            key for key, one in zip(self.data.keys, self.hidden.any(axis=0), strict=True) if one
        )

    @property
    def released(self) -> pd.DataFrame:
        """The released keys as text in the order of the file; missing ones are empty.

        With several data sets one after another, numbered from 1 by a first column ``dataset``.
        """
        frames = []
        for number, codes in enumerate(self.codes, start=1):
            frame = pd.DataFrame(
                {
                    key: pd.Series(np.array([*labels, None], dtype=object)[codes[:, j]], dtype=str)
                    for j, (key, labels) in enumerate(
                        zip(self.data.keys, self.data.labels, strict=True)
                    )
                }
            )
            if self.datasets > 1:
                frame.insert(0, "dataset", number)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    @property
    def changes(self) -> pd.DataFrame:
        """What was changed, one row per treated record; confidential.

        Index ``record``, from 0. For each key its true value and the released one, ``KEY_1`` and so
        on by data set, and the risk before and after.
        """
        rows = np.flatnonzero(self.treated)
        columns: dict[str, object] = {}
        for j, (key, labels) in enumerate(zip(self.data.keys, self.data.labels, strict=True)):
            texts = np.array([*labels, None], dtype=object)
            columns[f"true {key}"] = texts[self.data.codes[rows, j]]
            for number, codes in enumerate(self.codes, start=1):
                columns[f"released {key} {number}"] = texts[codes[rows, j]]
        columns["risk before"] = self.before.records["risk"].to_numpy()[rows]
        columns["risk after"] = self.after.records["risk"].to_numpy()[rows]
        columns["risk after, treated records known"] = self.strongest.records["risk"].to_numpy()[
            rows
        ]
        return pd.DataFrame(columns, index=pd.Index(rows, name="record"))

    def _title(self) -> str:
        return f"{self.data.source} after {self.method}: confidential"

    def _facts(self) -> list[Fact]:
        before, after = self.before, self.after
        return [
            (
                "expected matches",
                f"{before.expected.value:,.1f} -> {after.expected.value:,.1f}",
                f"right, of {self.data.n:,} records as targets; {KNOWS[after.knows]}; "
                f"{KNOWLEDGE[after.knowledge]}",
            ),
            ("highest risk", f"{before.highest:.3f} -> {after.highest:.3f}", "of a record"),
            (
                "treated",
                f"{int(self.treated.sum()):,} of {self.data.n:,}",
                f"records, in {', '.join(self.treated_keys) or 'no key'}",
            ),
            (
                "expected matches, strongest",
                f"{self.strongest.expected.value:,.1f}",
                f"after the treatment; {KNOWS['records']}",
            ),
            ("highest risk, strongest", f"{self.strongest.highest:.3f}", "of a record"),
            *((check.name, check.verdict, check.reason) for check in self.checks),
        ]
