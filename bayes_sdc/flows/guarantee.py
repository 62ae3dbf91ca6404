"""What a release promises to the people in small cells, what it adds up to, and what ends it.

With bounded steps (:mod:`bayes_sdc.flows.model.bounded`) a posterior draw is an exponential
mechanism. Whatever is made from the draw without another look at the table costs nothing more;
every further draw of the same table adds its own epsilon. Anything else that looks at the small
counts and is released, or decides what is released, is not covered: it ends the guarantee, with a
reason. Where it is not known whether something looked, it is assumed to have done so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea, own_area_rows
from bayes_sdc.flows.table.bound import bound_of
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.tainted import tainted_covariates
from bayes_sdc.results import Fact, Result

LARGEST = 30.0  # epsilon whose factor is written out
LONG_SEED = 2**64  # smaller ones can be found by trial
SHORT_SEED = (
    "the seed is so short that it can be found by trial, which undoes the release: leave it out, "
    "and one of 128 bits is drawn"
)
CHECK = "guarantee"  # name and key of the check
#: Other checks of a run that end it: key, verdicts, and why.
ENDING = {
    "convergence": (
        ("fail",), "the chains did not converge, so the draws may be far from the posterior",
    ),
    "row_order": (("look", "fail"), "the order of the rows may follow the small counts"),
    "other_columns": (("look", "fail"), "other released columns may reveal small counts"),
    "small_counts_left": (("look", "fail"), "some small counts are released as they are"),
    "released_before": (
        ("look",), "the same table was protected before, by runs whose epsilon is not known",
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Result):
    """What is promised about a release; made by :func:`guarantee`.

    Parameters
    ----------
    epsilon : float
        Of one data set, for one person in one small cell.
    datasets : int
        Data sets of this release, each from a posterior draw of its own.
    earlier : tuple of float
        Epsilons of earlier releases of the same table.
    ended : tuple of str
        Why nothing is promised; empty where it is.
    public : tuple of str
        What everybody is assumed to know.
    low : int
        Smallest count that is protected.
    """

    epsilon: float
    datasets: int
    earlier: tuple[float, ...]
    ended: tuple[str, ...]
    public: tuple[str, ...]
    low: int = 1

    @property
    def holds(self) -> bool:
        """Whether anything is promised."""
        return not self.ended

    @property
    def total(self) -> float:
        """Epsilon of this and earlier releases together; infinite if the guarantee ended."""
        if self.ended:
            return math.inf
        return self.datasets * self.epsilon + math.fsum(self.earlier)

    def for_person(self, times: int = 1) -> float:
        """Epsilon of a person who is counted in small cells several times.

        Parameters
        ----------
        times : int
            1 or more; a person who moved twice within the year is counted twice.

        Raises
        ------
        InputError
            If ``times`` is below 1.
        """
        if times < 1:
            raise InputError(f"times must be 1 or more; it is {times}")
        return times * self.total

    @property
    def for_move(self) -> float:
        """Epsilon of a person in one small cell rather than another: one leaves, one gains."""
        return 2.0 * self.total

    def ending(self, *reasons: str) -> "Guarantee":
        """The same with further reasons why nothing is promised."""
        return replace(self, ended=tuple(dict.fromkeys((*self.ended, *reasons))))

    def promise(self) -> list[str]:
        """Sentences that say what is promised, and to whom; or that nothing is, and why."""
        if self.ended:
            return [
                "No guarantee is given, although the steps of the model were bounded.",
                *(f"{reason[0].upper()}{reason[1:]}." for reason in self.ended),
            ]
        return [
            self._to_whom(),
            f"Whether or not such a person is counted in a cell, all others being the same, every "
            f"possible outcome of {self._made_of()} has the same probability up to a factor of "
            f"{factor(self.total)}. So for anybody who regards this person as independent of the "
            "others, whatever they knew before and know besides, the odds that the person is "
            f"counted there change by at most the factor {factor(self.total)} "
            f"(epsilon {_short(self.total)}).",
            "The odds that they are counted in one small cell rather than in another change by at "
            f"most the factor {factor(self.for_move)} (epsilon {_short(self.for_move)}). A "
            "person counted k times has k times the epsilon. So have k people who move together, "
            "such as a household: anyone who knows that they do learns about each what is said "
            "about all.",
            "It is the guarantee of exact draws from the posterior. Draws of a Markov chain come "
            "near to these, and how near is judged by R-hat and effective sample size, not proved.",
            "It holds while the seed of the run is secret: everything random follows from it, so "
            "anyone who has it, or finds it by trial, can undo the release.",
            "It covers the synthetic counts alone: not the decision to release them, and no other "
            "figure or verdict of a report, because these are computed with the true counts.",
        ]

    def _to_whom(self) -> str:
        if self.low <= 0:
            return "The promise is made to every person counted in a cell that is small."
        alone = ", such as one who is alone there" * (self.low == 1)
        return (
            "The promise is made to every person counted in a cell that is small, and would be "
            "small without them too. It is not made to people in a cell that holds the smallest "
            f"count that is protected, {self.low}{alone}: without them the cell would not be "
            "small, and which cells are small is public."
        )

    def _made_of(self) -> str:
        one = self.datasets == 1 and not self.earlier
        if one:
            return "the synthetic counts"
        words = f"the {self.datasets} data sets" if self.datasets > 1 else "the data set"
        if self.earlier:
            number = len(self.earlier)
            words += f" and the {number} earlier release{'' if number == 1 else 's'}"
        return f"{words} together"

    def _title(self) -> str:
        return "What the release promises"

    def _facts(self) -> list[Fact]:
        if self.ended:
            return [("epsilon", "none", "no guarantee is given"), *self._reasons()]
        return [
            ("epsilon", _short(self.total), "for a person in a small cell, all data sets together"),
            ("factor", factor(self.total), "by which the odds of being counted there can change"),
            ("move", _short(self.for_move), "epsilon for one small cell or another"),
            ("one data set", _short(self.epsilon), f"epsilon; {self.datasets} in this release"),
        ]

    def _reasons(self) -> list[Fact]:
        return [("ended", "", reason) for reason in self.ended]

    def _remarks(self) -> list[str]:
        return [*self.promise(), *(f"taken as public: {each}" for each in self.public)]

    def __repr__(self) -> str:
        if self.ended:
            return f"<Guarantee: none; {'; '.join(self.ended)}>"
        return f"<Guarantee: epsilon {_short(self.total)}; {self.datasets} data sets>"

    def check(self) -> Check:
        """Verdict of a run with an epsilon: it fails where nothing is promised."""
        return Check(CHECK, "pass" if self.holds else "fail", self.line(), key=CHECK)

    def line(self) -> str:
        """One line for the console."""
        if self.ended:
            return f"none, in spite of epsilon {_short(self.epsilon)}: {'; '.join(self.ended)}"
        return (
            f"epsilon {_short(self.total)} for a person in a small cell (factor "
            f"{factor(self.total)}), of exact draws; {_short(self.for_move)} between two small "
            "cells"
        )


@checked
def guarantee(
    table: FlowTable,
    posterior: xr.DataTree,
    *,
    datasets: int = 1,
    earlier: Sequence[float | None] = (),
    own_area: OwnArea = "protect",
    candidates: int = 1,
    totals: bool = False,
    chosen_by_evidence: bool = False,
) -> Guarantee:
    """Add up what a release promises, and find what ends it.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows` with ``epsilon``.
    datasets : int
        Data sets of the release, each from a posterior draw of its own: all that were ever drawn
        and shown to anyone outside, by whatever calls of :func:`bayes_sdc.synthesize`. A fit does
        not know of them.
    earlier : sequence of float or None
        Epsilon of each earlier release of the same table, of all its data sets together; None
        where it is not known.
    own_area : {"protect", "withhold", "publish"}
        Treatment of small counts of people who stayed in their area: their model has no bound.
    candidates : int
        Number of releases among which this one was chosen by a look at the true counts.
    totals : bool
        Whether totals that contain small counts are kept or published.
    chosen_by_evidence : bool
        Whether family, prior, epsilon or centres were chosen by how well they fit this table.

    Returns
    -------
    Guarantee

    Raises
    ------
    InputError
        If the posterior has no bound or belongs to another table, or a number is out of range.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.log_ratios

    References
    ----------
    C. Dwork, A. Roth 2014, doi:10.1561/0400000042, on composition; J. Seeman, M. Reimherr,
    A. Slavkovic, "Exact privacy guarantees for Markov chain implementations of the exponential
    mechanism", arXiv:2204.01132.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, guarantee, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, epsilon=0.5, draws=10, tune=10, chains=2, seed=2**100)
    >>> guarantee(table, posterior, datasets=3, earlier=[0.5]).total
    2.0
    """
    bound = bound_of(posterior.attrs)
    if bound is None:
        raise InputError(
            "the posterior was fitted without epsilon, so nothing is bounded; fit with epsilon="
        )
    check_posterior(table, posterior)
    for name, number in (("datasets", datasets), ("candidates", candidates)):
        if number < 1:
            raise InputError(f"{name} must be at least 1; it is {number}")
    known = [each for each in earlier if each is not None]
    if not all(math.isfinite(each) and each > 0.0 for each in known):
        raise InputError(f"earlier: epsilons must be numbers above 0; they are {list(earlier)}")
    ended = []
    if len(known) < len(earlier):
        ended.append(
            f"the epsilon of {len(earlier) - len(known)} earlier releases of this table is not "
            "known"
        )
    if candidates > 1:
        ended.append(f"the release was chosen among {candidates} by a look at the true counts")
    if totals or table.totals or table.total_columns:
        ended.append("totals that contain small counts are kept or published")
    if own_area != "withhold" and len(own_area_rows(table)):
        ended.append(
            "small counts of people who stayed in their area are released from a model without a "
            'bound; own_area="withhold" (--own-area withhold) leaves them out'
            if own_area == "protect"
            else "small counts of people who stayed in their area are released as they are"
        )
    if "weight" in posterior["constant_data"]:
        ended.append("the cells have weights, which may follow the small counts")
    if table.withheld or table.threshold_column is not None:
        ended.append("counts are weighted, so one person may count as many")
    if chosen_by_evidence:
        ended.append("the model was chosen by how well it fits the small counts of this table")
    ended += [
        f"covariate {name!r} was made from small counts" for name in tainted_covariates(table)
    ]
    if 0 <= int(posterior.attrs.get("seed", 0)) < LONG_SEED:
        ended.append(SHORT_SEED)
    return Guarantee(
        epsilon=bound.epsilon, datasets=datasets, earlier=tuple(known), ended=tuple(ended),
        public=_public(table, posterior), low=table.low,
    )  # fmt: skip


def _public(table: FlowTable, posterior: xr.DataTree) -> tuple[str, ...]:
    """What everybody is assumed to know."""
    made = posterior.attrs
    given = [
        f"which pairs are small ({table.low} to {table.high}), {_besides(table.low)}, and every "
        f"count above {table.high}",
        f"the model: family {made['family']}, prior {made['prior']}, and the bound of its steps, "
        f"about {made['centres_from']}; none of it may have been chosen by a look at the small "
        "counts",
    ]
    if made.get("covariates") == "published":
        given.append("covariates computed from the counts above the limit and from which are small")
    if len(table.covariates.columns):
        named = ", ".join(str(name) for name in table.covariates.columns)
        given.append(f"the covariates {named}, which must not have been made from small counts")
    return tuple(given)


def _besides(low: int) -> str:
    """Say which pairs are told beside the small ones: those that are not in the table, or fewer."""
    if low <= 0:
        return "which are not in the table"
    return "which are empty" if low == 1 else f"which are empty or below {low}"


def factor(epsilon: float) -> str:
    """Write exp(epsilon), rounded up: "at most" must hold for what is written.

    Examples
    --------
    >>> factor(1.0), factor(0.25), factor(20.0), factor(800.0)
    ('2.72', '1.29', '486,000,000', 'exp(800)')
    """
    if epsilon > LARGEST:
        return f"exp({_short(epsilon)})"
    value = math.exp(epsilon)
    places = 2 if value < 100.0 else min(0, 2 - math.floor(math.log10(value)))
    return f"{_up(value, places):,.{max(places, 0)}f}"


def _short(value: float) -> str:
    """Write a number with four digits, rounded up.

    Examples
    --------
    >>> _short(0.1 + 0.2), _short(0.12341), _short(1234.5)
    ('0.3', '0.1235', '1235')
    """
    if not math.isfinite(value) or value <= 0.0:
        return f"{value:.4g}"
    places = 3 - math.floor(math.log10(value))
    return f"{_up(value, places):.4g}"


def _up(value: float, places: int) -> float:
    """Round up to a number of decimal places, but not for the sake of a rounding error."""
    return math.ceil(value * 10.0**places * (1.0 - 1e-12)) / 10.0**places
