"""Settings of a measurement of the intruder's risk."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.flows.intruder.probabilities.prior import prior_of_cells
from bayes_sdc.flows.release.synthetic.earlier import earlier_counts
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import seed_sequence

Estimator = Literal["integrated", "paper", "refit"]
Knowledge = Literal["all-others", "none", "share"]
Unique = Literal["single-mover", "isolated"]
Prior = str | Sequence[float] | pd.Series | pd.DataFrame


@dataclass(frozen=True)
class RiskSettings:
    """The intruder's assumptions and how the risk is computed; see `bayes_sdc.intruder_risk`."""

    seed: int
    estimator: Estimator = "integrated"
    prior: Prior = "uniform"
    knowledge: Knowledge = "all-others"
    share: float | None = None
    unique: Unique = "single-mover"
    already_released: Sequence[Any] = ()
    refits: int = 0
    cores: int | None = None
    resume: Path | None = None

    def check(self, table: FlowTable) -> None:
        """Refuse unusable settings, before any work.

        Parameters
        ----------
        table : FlowTable
            Whose cells the prior is about.

        Raises
        ------
        InputError
            Naming the setting, its value and what is allowed.
        """
        check_choice("estimator", self.estimator, get_args(Estimator))
        check_choice("knowledge", self.knowledge, get_args(Knowledge))
        check_choice("unique", self.unique, get_args(Unique))
        check_share(self.knowledge, self.share)
        whole = isinstance(self.refits, int | np.integer) and not isinstance(self.refits, bool)
        if not whole or self.refits < 0:
            raise InputError(f"refits must be a whole number, 0 or more; it is {self.refits!r}")
        threads(self.cores)
        seed_sequence(self.seed)
        if table.n_small and not (isinstance(self.prior, str) and self.prior == "model"):
            prior_of_cells(self.prior, table, None)
        earlier_counts(table, self.already_released)


def check_share(knowledge: str, share: float | None) -> None:
    """Refuse a share that is missing, superfluous or not between 0 and 1."""
    number = isinstance(share, int | float | np.number) and 0 <= share <= 1
    if (share is None) == (knowledge == "share") or (share is not None and not number):
        raise InputError(
            'share goes with knowledge="share", and is a number from 0 to 1; it is '
            f"{share} with knowledge={knowledge!r}"
        )


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} {value!r} is unknown; choose from {list(choices)}")
