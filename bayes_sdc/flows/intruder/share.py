"""A share of cells that an intruder finds, with all that is needed to judge it."""

from dataclasses import dataclass

from bayes_sdc.errors import InputError
from bayes_sdc.results import Fact, Result, or_undefined


@dataclass(frozen=True, repr=False)
class Share(Result):
    """A share of cells, with all that is needed to judge it.

    Made by :func:`bayes_sdc.intruder_risk`, as ``r_all`` and ``r_unq``.

    Parameters
    ----------
    definition : str
        What is counted among what.
    cells : int
        Number of cells that it is a share of.
    value : float or None
        In [0, 1]; None when there is no such cell, which is not a risk of 0.
    interval : tuple of float, optional
        Wilson's 95 % interval, the cells taken as independent trials.
    monte_carlo_error : float, optional
        Standard error from the finite number of posterior draws, by comparing chains. It does not
        include the bias of importance weights that cannot be trusted.
    baseline : float, optional
        The same share for an intruder without the release who has the same prior, and guesses at
        random among equally likely counts.
    trusted : bool
        False when more than one of these cells in a hundred cannot be relied on: by the k-hat of
        its importance weights or by its Monte Carlo error.
    believes_release : float, optional
        The same share for an intruder who takes the first released count for the true one.
    """

    definition: str
    cells: int
    value: float | None
    interval: tuple[float, float] | None
    monte_carlo_error: float | None
    baseline: float | None
    trusted: bool
    believes_release: float | None = None

    def __float__(self) -> float:
        """Return the value; an undefined share has none."""
        if self.value is None:
            raise InputError(f"undefined: there are no {self.definition.partition(' among ')[2]}")
        return self.value

    def __str__(self) -> str:
        """Return the share in words."""
        if self.value is None or self.interval is None or self.baseline is None:
            return "undefined (no such cell)"
        low, high = self.interval
        trust = "" if self.trusted else "; NOT TRUSTED: some weights or errors are unreliable"
        error = (
            ""
            if self.monte_carlo_error is None
            else f", Monte Carlo error {self.monte_carlo_error:.2%}"
        )
        believed = (
            ""
            if self.believes_release is None
            else f", believing the released count {self.believes_release:.1%}"
        )
        return (
            f"{self.value:.1%} (95 % interval {low:.1%} to {high:.1%}{error}; without the "
            f"release {self.baseline:.1%}{believed}){trust}"
        )

    def _title(self) -> str:
        return self.definition

    def _facts(self) -> list[Fact]:
        interval = (
            "undefined" if self.interval is None else "{:.1%} to {:.1%}".format(*self.interval)
        )
        error = or_undefined(self.monte_carlo_error, ".2%")
        baseline = or_undefined(self.baseline, ".1%")
        facts: list[Fact] = [
            ("share", or_undefined(self.value, ".1%"), f"of {self.cells:,} cells"),
            ("95 % interval", interval, "the cells taken as independent trials"),
            ("without the release", baseline, "the same prior, guesses at random among ties"),
            ("Monte Carlo error", error, "from the finite number of posterior draws"),
        ]
        if not self.trusted:
            facts.append(("NOT TRUSTED", "", "some weights or errors are unreliable"))
        return facts

    def __repr__(self) -> str:
        return f"<Share: {self}>"
