"""All risk measures of a file side by side: what each expects, on what assumption, and for whom.

Methods for the same file can give population uniques that differ a hundredfold, since each rests on
a different idea of how the values of the population depend on each other. Those that give every
record a risk of its own are compared by how they rank the sample uniques, whatever their level.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.comparison.lines import (
    additive_lines,
    cells_line,
    class_lines,
    individual_lines,
    loglinear_lines,
    model_lines,
    ordered,
    size_line,
    special_line,
    validated_line,
)
from bayes_sdc.microdata.comparison.rankings import agreement_of, by_record, disagreements_of
from bayes_sdc.microdata.comparison.result import RiskComparison
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.superpopulation import SuperpopulationRisk
from bayes_sdc.microdata.lancaster.additive import Lancaster, lancaster
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros, allowed_cells
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk, latent_class_risk
from bayes_sdc.microdata.loglinear.risk import LoglinearRisk, does_not_apply, loglinear_risk
from bayes_sdc.microdata.patience import left_out
from bayes_sdc.microdata.size_models.ewens_pitman import ewens, pitman
from bayes_sdc.microdata.size_models.poisson_gamma import poisson_gamma, zayatz
from bayes_sdc.microdata.size_models.size_table import SizeModel
from bayes_sdc.microdata.special_uniques.dis_suda import dis_suda
from bayes_sdc.microdata.special_uniques.forecast import check_size
from bayes_sdc.seeds import seed_or_fresh


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
    >>> import pandas as pd
    >>> from bayes_sdc import read_microdata
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=list("abcd"))
    >>> found = compare_risks(read_microdata(frame, keys=list("abcd")), 3000)
    >>> found.methods["expected"].idxmax(), len(found.records) == found.uniques
    ('Zayatz', True)
    """
    seed = seed_or_fresh(seed)
    _check(microdata, max_size, cells, most_disagreements)
    of_models = model_lines(models or {})
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
    poisson, told = (
        (None, ()) if "loglinear" in late else _loglinear(microdata, population_size, seed)
    )
    lines = [*class_lines(latent_classes), *of_models, *loglinear_lines(poisson)]
    lines += [] if additive is None else additive_lines(additive)
    lines += [] if validated is None else [validated_line(validated)]
    lines += [] if special is None else [special_line(special)]
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
            lines.append(size_line(model))
    lines.append(cells_line(microdata, population_size, cells))
    records = by_record(microdata, latent_classes, poisson, additive, validated, special)
    if microdata.weights is None:
        notes.append("no weights, so no individual risk of Benedetti, Franconi and Polettini")
    elif len(records):
        inclusion = 1.0 / microdata.F[records.index]
        risk = individual_risk(np.ones(len(records), np.int64), inclusion)
        records["individual risk"] = risk
        lines += individual_lines(risk, inclusion)
    ranking = records.loc[:, records.nunique() > 1] if len(records) else records
    if alike := [str(name) for name in records if name not in ranking]:
        notes.append(f"{', '.join(alike)}: the same for every record, so without a ranking")
    return RiskComparison(
        methods=ordered(lines),
        records=records,
        agreement=agreement_of(ranking),
        disagreements=disagreements_of(records, microdata, most_disagreements),
        uniques=len(records),
        notes=tuple(dict.fromkeys(notes)),
        seed=seed,
    )


def _check(microdata: Microdata, max_size: int, cells: int | None, most: int) -> None:
    """Refuse what cannot be used before any method is at work."""
    if most < 0:
        raise InputError(f"most_disagreements must be 0 or more; it is {most}")
    check_size(max_size, len(microdata.keys))
    if cells is not None:
        check_cells(microdata, cells)


def _classes(
    microdata: Microdata, population: int, zeros: StructuralZeros | None, seed: int
) -> LatentClassRisk:
    if does_not_apply(microdata):
        zeros = None  # by the rules that match missing values a record may be possible in part
    return latent_class_risk(
        microdata, population_size=population, structural_zeros=zeros, seed=seed
    )


def _loglinear(
    microdata: Microdata, population: int, seed: int
) -> tuple[LoglinearRisk | None, tuple[str, ...]]:
    """Fit a log-linear model where it applies, with notes."""
    if why := does_not_apply(microdata):
        return None, (f"log-linear is left out: {why}",)
    found = loglinear_risk(microdata, population, seed=seed)
    return found, found.notes


def _size_models(microdata: Microdata, population: int, cells: int) -> list[SizeModel]:
    sizes, n = microdata.size_indices, microdata.n
    return [
        ewens(sizes, n, population),
        pitman(sizes, n, population),
        poisson_gamma(sizes, n, population, cells=max(cells, 2)),
        zayatz(sizes, n, population),
    ]


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


def check_cells(microdata: Microdata, cells: int) -> None:
    """Refuse fewer possible combinations than the file has."""
    least = len(microdata.combinations)
    whole = isinstance(cells, int | np.integer) and not isinstance(cells, bool)
    if not whole or cells < least:
        raise InputError(
            "cells, the combinations that can occur, must be a whole number from the "
            f"{least:,} combinations in the file up; it is {cells!r}"
        )


def size_indices_differ(microdata: Microdata) -> list[str]:
    """Say why size indices do not describe the sample uniques, where they do not."""
    exact = int((microdata.combinations["records"] == 1).sum())
    if exact == microdata.sample_uniques:
        return []
    return [
        f"size indices count a missing value as a category: {exact:,} combinations of one record, "
        f"where {microdata.sample_uniques:,} records are unique by the rule {microdata.missing!r}"
    ]
