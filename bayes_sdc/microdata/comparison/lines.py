"""What each method expects of a file, and on what assumption: one line per method."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.arguments import check
from bayes_sdc.microdata.comparison.result import DRAWN, MATCHES, UNIQUES
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.superpopulation import MODELS, SuperpopulationRisk
from bayes_sdc.microdata.lancaster.additive import Lancaster
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.loglinear.risk import WHEN_WRONG, LoglinearRisk
from bayes_sdc.microdata.size_models.size_table import SizeModel
from bayes_sdc.microdata.special_uniques.dis_suda import DisSuda
from bayes_sdc.microdata.uniques.unstructured import expected_uniques

NORMAL = 1.959963984540054  # half width of a 95 % interval in standard errors


class Line(NamedTuple):
    """A line of the table."""

    method: str
    about: str
    expected: float
    low: float
    high: float
    by_record: bool
    assumption: str


def ordered(lines: list[Line]) -> pd.DataFrame:
    """Table of the methods: by what is expected, the highest first."""
    methods = pd.DataFrame(lines).set_index("method")
    places = methods["about"].map({UNIQUES: 0, MATCHES: 1, DRAWN: 2})
    return methods.iloc[np.lexsort([-methods["expected"], places])]


def class_lines(found: LatentClassRisk) -> list[Line]:
    """Population uniques and matches by latent classes, which are recommended."""
    text = (
        "keys are dependent by latent classes, about which combinations scatter as "
        "much as the file shows (90 % interval). Too high by up to a half where people come in "
        "clumps and the fraction is near 1 %; its checks say when the file cannot tell"
    )
    said = "recommended" if found.trusted else "NOT recommended for this file, see its checks"
    text = f"{said}: {text}"
    return [
        Line(f"latent classes, {what}", about, total.value, *total.interval, True, text)
        for what, about, total in (
            ("uniques", UNIQUES, found.tau1),
            ("matches", MATCHES, found.tau2),
        )
    ]


def model_lines(models: Mapping[str, SuperpopulationRisk]) -> list[Line]:
    """Estimates of the models that let the frequencies in the population scatter."""
    for name, given in models.items():
        check(f"models[{name!r}]", given, SuperpopulationRisk)
    return [
        Line(
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


def loglinear_lines(found: LoglinearRisk | None) -> list[Line]:
    """Population uniques and matches by a log-linear model, where it was fitted."""
    if found is None:
        return []
    pairs = len(found.interactions)
    text = (
        f"keys are independent but for {pairs} {'pair' if pairs == 1 else 'pairs'} of them, chosen "
        f"by the estimated error of the risk. {WHEN_WRONG}"
    )
    if not found.converged:
        text = f"not converged; {text}"
    return [
        Line("log-linear, uniques", UNIQUES, found.tau1, *found.tau1_interval, True, text),
        Line("log-linear, matches", MATCHES, found.tau2, np.nan, np.nan, True, text),
    ]


def additive_lines(additive: Lancaster) -> list[Line]:
    """Population uniques where keys are independent, and where pairs of them interact."""
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
        Line(name, UNIQUES, float(expected[factor]), np.nan, np.nan, True, text)
        for name, (factor, text) in texts.items()
    ]


def validated_line(validated: Lancaster) -> Line:
    """Population uniques by Lancaster's model with the shrinkage that predicts best."""
    chosen = validated.shrinkage
    assert chosen is not None  # noqa: S101 cross-validation chooses one
    return Line(
        "Lancaster, cross-validated",
        UNIQUES,
        float(validated.table["expected_renormalized"].to_dict()[chosen]),
        np.nan,
        np.nan,
        True,
        f"as Lancaster, interactions shrunk by the factor {chosen:g} that predicts best",
    )


def special_line(special: DisSuda) -> Line:
    """Sample uniques times DIS, which no model of the population stands behind."""
    total = special.total or 0.0
    n = len(special.suda.contributions)
    low, high = special.dis.beta_interval or (np.nan, np.nan)
    return Line(
        "DIS-SUDA",
        DRAWN,
        total,
        low * n,
        high * n,
        True,
        "none on the population: uniques against pairs in the file, shared out by SUDA score; "
        "counts correct matches among unique ones, not population uniques",
    )


def size_line(model: SizeModel) -> Line:
    """Population uniques by a model of how many combinations have each size."""
    expected = float(model)
    half = np.nan if model.expected_error is None else NORMAL * model.expected_error
    return Line(
        model.model,
        UNIQUES,
        expected,
        max(expected - half, 0.0) if np.isfinite(half) else np.nan,
        expected + half,
        False,
        model.assumption,
    )


def cells_line(microdata: Microdata, population: int, cells: int) -> Line:
    """Population uniques where every table of the population is equally likely."""
    uniques = microdata.sample_uniques
    expected = expected_uniques(uniques, microdata.n, population, cells) if uniques else 0.0
    return Line(
        "Cohen-Sackrowitz",
        UNIQUES,
        float(expected),
        np.nan,
        np.nan,
        False,
        f"every population table of {cells:,} cells is equally likely; all uniques are equally at "
        "risk. Wrong where most of these cells cannot be occupied",
    )


def individual_lines(risk: np.ndarray, inclusion: np.ndarray) -> list[Line]:
    """Matches and population uniques by the individual risk of each record."""
    name, text = (
        "individual risk",
        "the weight of a combination says how often it occurs; too low for rare combinations, of "
        "whose neighbours it knows nothing",
    )
    # sorted: the sums must not depend on the order of the records
    matches, uniques = (float(np.sort(values).sum()) for values in (risk, inclusion))
    return [
        Line(name + ", matches", MATCHES, matches, np.nan, np.nan, True, text),
        Line(name + ", uniques", UNIQUES, uniques, np.nan, np.nan, True, text),
    ]
