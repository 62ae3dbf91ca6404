"""All risk measures of a file side by side: what each expects, on what assumption, and for whom.

Methods for the same file can give population uniques that differ a hundredfold, since each rests on
another idea of how the values of the population depend on each other. Those that give every record
a risk of its own are compared by how they rank the sample uniques, whatever their level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from bayes_sdc.arguments import check, checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.keys import Microdata
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.superpopulation import MODELS, SuperpopulationRisk
from bayes_sdc.microdata.lancaster.additive import Lancaster, lancaster
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros, allowed_cells
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk, latent_class_risk
from bayes_sdc.microdata.loglinear.risk import (
    WHEN_WRONG,
    LoglinearRisk,
    does_not_apply,
    loglinear_risk,
)
from bayes_sdc.microdata.patience import left_out
from bayes_sdc.microdata.size_models.ewens_pitman import ewens, pitman
from bayes_sdc.microdata.size_models.poisson_gamma import poisson_gamma, zayatz
from bayes_sdc.microdata.size_models.size_table import SizeModel
from bayes_sdc.microdata.special_uniques.dis_suda import DisSuda, dis_suda
from bayes_sdc.microdata.special_uniques.forecast import check_size
from bayes_sdc.microdata.uniques.unstructured import expected_uniques
from bayes_sdc.results import Fact, Result
from bayes_sdc.seeds import seed_or_fresh

UNIQUES = "sample uniques that are population uniques"
MATCHES = "correct matches of sample uniques"
DRAWN = "sample uniques times the share of correct among unique matches"
NORMAL = 1.959963984540054  # half width of a 95 % interval in standard errors


class _Line(NamedTuple):
    """A line of the table."""

    method: str
    about: str
    expected: float
    low: float
    high: float
    by_record: bool
    assumption: str


@dataclass(frozen=True, eq=False, repr=False)
class RiskComparison(Result):
    """What the methods say about a file.

    Made by :func:`bayes_sdc.compare_risks`.

    Parameters
    ----------
    methods : DataFrame
        Index ``method``. ``about``: what is expected: population uniques among the sample uniques,
        correct matches of them, or their number times DIS, which is less than that. ``expected``
        number, with ``low`` and ``high``: a 95 % interval, or the range over what the method leaves
        open; NaN where it gives none. ``by_record``: whether records differ. ``assumption`` in one
        line. From the largest expected number down, for each of the three.
    records : DataFrame
        Index ``record`` (sample uniques, by place in the file), a column a method that tells
        records apart. Risks in [0, 1], and the SUDA score. Confidential.
    agreement : DataFrame
        Spearman's rank correlation of the columns of ``records``, but for those that give all
        records the same, which ``notes`` names.
    disagreements : DataFrame
        Sample uniques by the difference between the shares of records that two methods put below
        them, largest first. Columns in two levels: ``key`` (the values), ``disagreement``
        (``difference``, and the methods ``highest`` and ``lowest``), and ``share below`` by each
        method. Confidential.
    uniques : int
        Sample uniques.
    notes : tuple of str
        What was assumed or left out.
    seed : int, optional
        Everything random followed from it.
    """

    methods: pd.DataFrame
    records: pd.DataFrame
    agreement: pd.DataFrame
    disagreements: pd.DataFrame
    uniques: int
    notes: tuple[str, ...]
    seed: int | None = None

    def __str__(self) -> str:
        """Return the expected numbers and assumptions, one per line."""
        width = max(map(len, self.methods.index))
        lines = [f"{self.uniques:,} sample uniques; of these are expected:"]
        for about, part in self.methods.groupby("about", sort=False):
            lines.append(f"{about}:")
            lines += [
                f"  {name:<{width}}  {row['expected']:>12,.2f}  {row['assumption']}"
                for name, row in part.iterrows()
            ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _title(self) -> str:
        return f"Methods on {self.uniques:,} sample uniques: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (
                str(name),
                f"{row['expected']:,.2f}"
                + ("" if np.isnan(row["low"]) else f" [{row['low']:,.2f}, {row['high']:,.2f}]"),
                f"{row['about']}; {row['assumption']}",
            )
            for name, row in self.methods.iterrows()
        ]

    def in_one_line(self) -> str:
        """Say how far the estimates of the population uniques are apart; confidential."""
        expected = self.methods.loc[self.methods["about"] == UNIQUES, "expected"]
        return (
            f"sample uniques that are population uniques, of {self.uniques:,}: "
            f"{expected.min():,.1f} ({expected.idxmin()}) to {expected.max():,.1f} "
            f"({expected.idxmax()}) by {len(expected)} methods"
        )

    def __repr__(self) -> str:
        return f"<RiskComparison: {self.in_one_line()}>"


@checked
def compare_risks(
    microdata: Microdata,
    population_size: int,
    *,
    max_size: int = 3,
    structural_zeros: StructuralZeros | None = None,
    cells: int | None = None,
    latent_classes: LatentClassRisk | None = None,
    models: Mapping[str, SuperpopulationRisk] | None = None,
    most_disagreements: int = 20,
    seed: int | None = 0,
    slow: bool = False,
) -> RiskComparison:
    """Compute every risk measure of sample uniques and compare them.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`; two keys or more.
    population_size : int
        People in the population, at least the number of records.
    max_size : int
        Largest minimal sample unique of DIS-SUDA.
    structural_zeros : data frame or sequence of mappings, optional
        Impossible cells, as in `lancaster`; models that count cells leave them out.
    cells : int, optional
        Combinations that can occur, for the models that count cells; by default all combinations
        of levels but for the structural zeros.
    latent_classes : LatentClassRisk, optional
        From `latent_class_risk` for this file and population; computed by default.
    models : mapping from name to SuperpopulationRisk, optional
        From `superpopulation_risk` for this file, to stand beside the others; none by default. The
        model "known" is the individual risk, which stands there where the file has weights.
    most_disagreements : int
        Records to list.
    seed : int, optional
        Of the latent classes and of the cross-validation of Lancaster's model. None: a fresh one
        of 128 bits; ``seed`` of the result.
    slow : bool
        Whether to run methods that take minutes by their forecasts. By default a note names them.

    Returns
    -------
    RiskComparison
        Tables of methods, records, agreement and disagreements.

    Raises
    ------
    InputError
        If an argument is out of range for a method.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.latent_class_risk, bayes_sdc.superpopulation_risk,
    bayes_sdc.plot_risk_comparison

    References
    ----------
    C. J. Skinner, N. Shlomo 2008, doi:10.1198/016214507000001328; D. Manrique-Vallier, J. P. Reiter
    2012, doi:10.1080/01621459.2012.710508.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> from bayes_sdc.microdata.file.keys import read_microdata
    >>> frame = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=list("abcd"))
    >>> found = compare_risks(read_microdata(frame, keys=list("abcd")), 3000)
    >>> found.methods["expected"].idxmax(), len(found.records) == found.uniques
    ('Zayatz', True)
    """
    seed = seed_or_fresh(seed)
    if most_disagreements < 0:
        raise InputError(f"most_disagreements must be 0 or more; it is {most_disagreements}")
    check_size(max_size, len(microdata.keys))  # before the work of the other methods
    late = {} if slow else left_out(microdata, max_size)

    def shrunk(factors: Any) -> Lancaster:
        return lancaster(
            microdata,
            population_size,
            shrinkage=factors,
            structural_zeros=structural_zeros,
            seed=seed,
        )

    additive = None if "lancaster" in late else shrunk((0.0, 1.0))
    validated = None if {"lancaster", "cross-validation"} & set(late) else shrunk("cv")
    fraction = microdata.n / population_size
    special = None if "suda" in late else dis_suda(microdata, fraction, max_size=max_size)
    if latent_classes is None:
        latent_classes = _classes(microdata, population_size, structural_zeros, seed)
    poisson, told = _loglinear(microdata, population_size, seed)
    lines = [
        *_class_lines(latent_classes), *_model_lines(models or {}), *_loglinear_lines(poisson)
    ]  # fmt: skip
    lines += [] if additive is None else _additive_lines(additive)
    lines += [] if validated is None else [_validated_line(validated)]
    lines += [] if special is None else [_special_line(special)]
    notes = [*late.values(), *(additive.notes if additive is not None else ())]
    notes += told
    cells, counted = _possible_cells(microdata, cells, structural_zeros)
    notes += counted
    differing = size_indices_differ(microdata)
    notes += [f"Ewens, Pitman, Poisson-gamma and Zayatz are left out: {why}" for why in differing]
    for model in [] if differing else _size_models(microdata, population_size, cells):
        if model.expected is None:
            notes.append(str(model))
        else:
            lines.append(_size_line(model))
    lines.append(_cells_line(microdata, population_size, cells))
    records = _by_record(microdata, latent_classes, poisson, additive, validated, special)
    if microdata.weights is None:
        notes.append("no weights, so no individual risk of Benedetti, Franconi and Polettini")
    elif len(records):
        inclusion = 1.0 / microdata.F[records.index]
        risk = individual_risk(np.ones(len(records), np.int64), inclusion)
        records["individual risk"] = risk
        lines += _individual_lines(risk, inclusion)
    ranking = records.loc[:, records.nunique() > 1] if len(records) else records
    if alike := [str(name) for name in records if name not in ranking]:
        notes.append(f"{', '.join(alike)}: the same for every record, so without a ranking")
    return RiskComparison(
        methods=_ordered(lines),
        records=records,
        agreement=_agreement(ranking),
        disagreements=_disagreements(records, microdata, most_disagreements),
        uniques=len(records),
        notes=tuple(dict.fromkeys(notes)),
        seed=seed,
    )


def _classes(
    microdata: Microdata, population: int, zeros: StructuralZeros | None, seed: int
) -> LatentClassRisk:
    if does_not_apply(microdata):
        zeros = None  # by the rules that match missing values a record may be possible in part
    return latent_class_risk(
        microdata, population_size=population, structural_zeros=zeros, seed=seed
    )


def _class_lines(found: LatentClassRisk) -> list[_Line]:
    text = (
        "keys are dependent by latent classes, about which combinations scatter as "
        "much as the file shows (90 % interval). Too high by up to a half where people come in "
        "clumps and the fraction is near 1 %; its checks say when the file cannot tell"
    )
    said = "recommended" if found.trusted else "NOT recommended for this file, see its checks"
    text = f"{said}: {text}"
    return [
        _Line(f"latent classes, {what}", about, total.value, *total.interval, True, text)
        for what, about, total in (
            ("uniques", UNIQUES, found.tau1),
            ("matches", MATCHES, found.tau2),
        )
    ]


def _model_lines(models: Mapping[str, SuperpopulationRisk]) -> list[_Line]:
    """Estimates of the models that let the frequencies in the population scatter."""
    for name, given in models.items():
        check(f"models[{name!r}]", given, SuperpopulationRisk)
    return [
        _Line(
            f"model {name}, {what}", about, total.value, *total.interval, True,
            ("" if models[name].trusted else "not trusted for this file; ")
            + f"{words} (95 % interval)",
        )
        for name, words in MODELS.items()
        if name in models and name != "known"
        for what, about, total in (
            ("uniques", UNIQUES, models[name].tau1),
            ("matches", MATCHES, models[name].tau2),
        )
    ]  # fmt: skip


def _loglinear(
    microdata: Microdata, population: int, seed: int
) -> tuple[LoglinearRisk | None, tuple[str, ...]]:
    """Fit a log-linear model where it applies, with notes."""
    if why := does_not_apply(microdata):
        return None, (f"log-linear is left out: {why}",)
    found = loglinear_risk(microdata, population, seed=seed)
    return found, found.notes


def _loglinear_lines(found: LoglinearRisk | None) -> list[_Line]:
    if found is None:
        return []
    text = (
        f"keys are independent but for {len(found.interactions)} pairs of them, chosen by the "
        f"estimated error of the risk. {WHEN_WRONG}"
    )
    if not found.converged:
        text = f"not converged; {text}"
    return [
        _Line("log-linear, uniques", UNIQUES, found.tau1, *found.tau1_interval, True, text),
        _Line("log-linear, matches", MATCHES, found.tau2, np.nan, np.nan, True, text),
    ]


def _ordered(lines: list[_Line]) -> pd.DataFrame:
    """Table of the methods: by what is expected, the highest first."""
    methods = pd.DataFrame(lines).set_index("method")
    places = methods["about"].map({UNIQUES: 0, MATCHES: 1, DRAWN: 2})
    return methods.iloc[np.lexsort([-methods["expected"], places])]


def _possible_cells(
    microdata: Microdata, cells: int | None, structural_zeros: StructuralZeros | None
) -> tuple[int, list[str]]:
    """Number of combinations that can occur, and a note where the structural zeros are unknown."""
    if cells is not None:
        check_cells(microdata, cells)
        return cells, []
    cells = allowed_cells(microdata, structural_zeros)
    if structural_zeros is not None:
        return cells, []
    return cells, [
        f"Poisson-gamma and Cohen-Sackrowitz count all {cells:,} combinations of levels; "
        "those that cannot occur must not be counted: every unique would look rarer"
    ]


def _by_record(
    microdata: Microdata,
    classes: LatentClassRisk,
    poisson: LoglinearRisk | None,
    additive: Lancaster | None,
    validated: Lancaster | None,
    special: DisSuda | None,
) -> pd.DataFrame:
    """Risk of every sample unique, a column a method that was run."""
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


def _additive_lines(additive: Lancaster) -> list[_Line]:
    expected, negative = (
        additive.table[name].to_dict() for name in ("expected_renormalized", "negative")
    )
    texts = {
        "independence": (
            0.0,
            "keys are unrelated; far too high where they are related",
        ),
        "Lancaster": (
            1.0,
            "all pairs of keys are dependent as in the file, and nothing else is; wrong where "
            "probabilities fall below 0: "
            f"{negative[1.0]:.2g} of negative probability cut off",
        ),
    }
    return [
        _Line(name, UNIQUES, float(expected[factor]), np.nan, np.nan, True, text)
        for name, (factor, text) in texts.items()
    ]


def _validated_line(validated: Lancaster) -> _Line:
    chosen = validated.shrinkage
    assert chosen is not None  # noqa: S101 cross-validation chooses one
    return _Line(
        "Lancaster, cross-validated",
        UNIQUES,
        float(validated.table["expected_renormalized"].to_dict()[chosen]),
        np.nan,
        np.nan,
        True,
        f"as Lancaster, interactions shrunk by the factor {chosen:g} that predicts best",
    )


def _special_line(special: DisSuda) -> _Line:
    total = special.total or 0.0
    n = len(special.suda.contributions)
    low, high = special.dis.beta_interval or (np.nan, np.nan)
    return _Line(
        "DIS-SUDA",
        DRAWN,
        total,
        low * n,
        high * n,
        True,
        "none on the population: uniques against pairs in the file, shared out by SUDA score; "
        "counts correct matches among unique ones, not population uniques",
    )


def check_cells(microdata: Microdata, cells: int) -> None:
    """Refuse a number of combinations that can occur which is below those that do."""
    least = len(microdata.combinations)
    whole = isinstance(cells, int | np.integer) and not isinstance(cells, bool)
    if not whole or cells < least:
        raise InputError(
            "cells, the combinations that can occur, must be a whole number from the "
            f"{least:,} combinations in the file up; it is {cells!r}"
        )


def size_indices_differ(microdata: Microdata) -> list[str]:
    """Say why size indices do not tell of the sample uniques, where they do not."""
    exact = int((microdata.combinations["records"] == 1).sum())
    if exact == microdata.sample_uniques:
        return []
    return [
        f"size indices count a missing value as a category: {exact:,} combinations of one record, "
        f"where {microdata.sample_uniques:,} records are unique by the rule {microdata.missing!r}"
    ]


def _size_models(microdata: Microdata, population: int, cells: int) -> list[SizeModel]:
    sizes, n = microdata.size_indices, microdata.n
    return [
        ewens(sizes, n, population),
        pitman(sizes, n, population),
        poisson_gamma(sizes, n, population, cells=max(cells, 2)),
        zayatz(sizes, n, population),
    ]


def _size_line(model: SizeModel) -> _Line:
    expected = float(model)
    half = np.nan if model.expected_error is None else NORMAL * model.expected_error
    return _Line(
        model.model,
        UNIQUES,
        expected,
        max(expected - half, 0.0) if np.isfinite(half) else np.nan,
        expected + half,
        False,
        model.assumption,
    )


def _cells_line(microdata: Microdata, population: int, cells: int) -> _Line:
    uniques = microdata.sample_uniques
    expected = expected_uniques(uniques, microdata.n, population, cells) if uniques else 0.0
    return _Line(
        "Cohen-Sackrowitz",
        UNIQUES,
        float(expected),
        np.nan,
        np.nan,
        False,
        f"every population table of {cells:,} cells is equally likely; all uniques are equally at "
        "risk. Wrong where most of these cells cannot be occupied",
    )


def _individual_lines(risk: np.ndarray, inclusion: np.ndarray) -> list[_Line]:
    name, text = (
        "individual risk",
        "the weight of a combination says how often it occurs; too low for rare combinations, of "
        "whose neighbours it knows nothing",
    )
    # sorted: the sums must not depend on the order of the records
    matches, uniques = (float(np.sort(values).sum()) for values in (risk, inclusion))
    return [
        _Line(name + ", matches", MATCHES, matches, np.nan, np.nan, True, text),
        _Line(name + ", uniques", UNIQUES, uniques, np.nan, np.nan, True, text),
    ]


def _agreement(records: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rank correlations; undefined for a column without differences."""
    names = records.columns
    if not len(names):
        return pd.DataFrame(index=names, columns=names, dtype=float)
    ranks = np.array([rankdata(records[name]) for name in names])
    centred = ranks - ranks.mean(axis=1, keepdims=True) if records.shape[0] else ranks
    length = np.sqrt((centred**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = centred @ centred.T / np.outer(length, length)
    return pd.DataFrame(matrix.clip(-1.0, 1.0), index=names, columns=names)


def _disagreements(records: pd.DataFrame, microdata: Microdata, most: int) -> pd.DataFrame:
    """Records by the difference between their places in two rankings."""
    n, index = len(records), records.index
    below = pd.DataFrame(
        {name: (rankdata(records[name]) - 0.5) / max(n, 1) for name in records.columns},
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
