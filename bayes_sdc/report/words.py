"""Technical words of a first page, each with its meaning: a board reads no glossary first.

Sections explain their own words; page one and the contents are made of sentences that differ from
run to run, so what stands in them is looked up here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Word(NamedTuple):
    """A technical word and what it means."""

    name: str
    pattern: str
    meaning: str


WORDS = (
    Word(
        "bit",
        r"\bbits\b|\b(?:1|[Oo]ne) bit\b",
        "one bit more doubles the probability of the true count",
    ),
    Word("prior", r"\bprior\b", "what is expected before the data, or the release, are seen"),
    Word("R_all", r"\bR_all\b", "share of all small counts that an intruder finds"),
    Word(
        "R_unq",
        r"\bR_unq\b",
        "share of small counts that an intruder finds among those of the riskiest kind",
    ),
    Word(
        "importance weights",
        r"importance weights|unreliable weights|[Ww]eights behind",
        "they turn the draws of the fit into what a fit to another count would give",
    ),
    Word("k-hat", r"\bk-hat\b", "high where a few draws outweigh all others"),
    Word("chains", r"\bchains\b", "repeated runs of the sampler"),
    Word("R-hat", r"\bR-hat\b", "compares the chains, and is 1 where they agree"),
    Word(
        "ESS, effective size",
        r"\bESS\b|[Ee]ffective (?:sample )?size",
        "the number of independent draws that would tell as much",
    ),
    Word(
        "dispersion",
        r"\b[Dd]ispersion\b",
        "how far the counts scatter, in units of what the model expects",
    ),
    Word("entropy", r"\bentropy\b", "how evenly the flows of an area are spread over its partners"),
    Word(
        "gravity model",
        r"\bgravity model\b",
        "a regression of flows on distance, or on being in one state, with an effect of each area",
    ),
    Word(
        "latent classes",
        r"\b[Ll]atent classes\b",
        "hidden classes of people, each with its own shares of the values of every key variable",
    ),
    Word("F", r"\bF = 1\b|\b1/F\b", "people in the population with the key values of a record"),
    Word("tau1", r"\btau1\b", "sample uniques that are alone in the population"),
    Word("tau2", r"\btau2\b", "right matches among sample uniques"),
    Word("kappa", r"\bkappa\b", "how the scatter of combinations goes with their size"),
    Word("log likelihood", r"\blog likelihood\b", "how probable the file is by the model"),
    Word("sampling fraction", r"\bsampling fraction\b", "share of the population in the file"),
    Word(
        "known, uncertain, gamma, extended",
        r"\bfile: (?:known|uncertain|gamma|extended)\b|\((?:known|uncertain|gamma|extended)\)|"
        r"\bmodel '(?:known|uncertain|gamma|extended)'",
        "models of how often combinations occur, which know nothing of the key variables",
    ),
)


def words_in(texts: Iterable[str]) -> list[Word]:
    """Return the technical words of some texts.

    Examples
    --------
    >>> [word.name for word in words_in(["R-hat is 1.02", "+0.1 bits"])]
    ['bit', 'chains', 'R-hat']
    """
    together = "\n".join(texts)
    found = [word for word in WORDS if re.search(word.pattern, together)]
    # a meaning may use a word that the texts do not
    meanings = " ".join(word.meaning for word in found)
    return [word for word in WORDS if word in found or re.search(word.pattern, meanings)]


#: Signs of the meanings on page one that stand open: two lines of a wide window.
UNFOLDED = 380

#: What values of arguments of a fit mean, by argument.
VALUES = {
    "family": {
        "negative-binomial": "counts scatter more than by chance alone",
        "canonical": "the same, and counts of large areas may be as large as they are",
        "poisson": "counts scatter by chance alone",
        "base": "counts are as common as the table itself tells",
    },
    "prior": {
        "pooled": "parameters of the groups come from one national distribution",
        "weak": "every group has wide priors of its own",
        "paper": "the priors of the paper that proposed the model",
    },
    "sampler": {
        "gibbs": "the sampler of this package",
        "nuts": "Hamiltonian Monte Carlo, by PyMC's model",
        "reference": "the slow sampler that the others are tested against",
    },
    "unique": {
        "single-mover": "R_unq is of cells whose true count is 1",
        "isolated": "R_unq is of cells whose origin and destination are in no other small cell",
    },
}


#: The same of arguments that are numbers.
NUMBERS = {
    "draws": "draws of each chain that are kept",
    "tune": "draws of each chain before those kept",
    "chains": "repeated runs of the sampler",
    "releases": "other releases drawn to see how far the risk varies",
}


def values_explained(arguments: Mapping[str, Any]) -> str:
    """Say what arguments mean: values that are names, and numbers of draws; empty where none is.

    Examples
    --------
    >>> values_explained({"sampler": "gibbs", "tune": 100, "origin": "base"})
    'sampler gibbs: the sampler of this package; tune: draws of each chain before those kept'
    """
    named = [
        f"{name} {arguments[name]}: {meanings[str(arguments[name])]}"
        for name, meanings in VALUES.items()
        if str(arguments.get(name)) in meanings
    ]
    numbers = [f"{name}: {meaning}" for name, meaning in NUMBERS.items() if name in arguments]
    return "; ".join(named + numbers)


#: What anyone sees about areas and groups, by the start of the name of a covariate.
COVARIATES = {
    "log_safe_outflow": "sum of the safe counts from the {}",
    "log_safe_inflow": "sum of the safe counts to the {}",
    "log_partners": "number of partners of the {}",
    "log_odds_safe": "share of safe counts of the {}",
}


def covariate_in_words(name: str) -> str:
    """Say what a covariate of the model is; one of the user's has its own name.

    Examples
    --------
    >>> covariate_in_words("log_partners_origin"), covariate_in_words("distance")
    ('number of partners of the origin', 'distance')
    """
    start, _, end = name.rpartition("_")
    known = start in COVARIATES and end in ("origin", "destination", "group")
    return COVARIATES[start].format(end) if known else name


def words_of_page(context: Mapping[str, Any]) -> dict[str, list[Word] | bool]:
    """Return the words of page one, whether to fold them, and those that only the contents use."""
    first = [text for answer in context.get("page_one", ()) for text in answer]
    for one in context.get("figures", ()):
        first += [one.number, one.words, one.why]
    of_contents = [f"{entry.title} {entry.reason}" for entry in context["contents"]]
    on_page_one = words_in(first)
    return {
        "words_of_page_one": on_page_one,
        "words_folded": sum(len(one.name + one.meaning) + 4 for one in on_page_one) > UNFOLDED,
        "words_of_contents": [word for word in words_in(of_contents) if word not in on_page_one],
    }
