"""Why an estimate by latent classes is not to be relied on: what holds, and nothing else."""

from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.latent_classes.verdicts import AGREE

#: What each check tells the agency and the public where the estimate is not trusted for it.
REASONS = {
    "classes_chains": (
        "the chains disagree about it",
        "repeated runs of the computation disagree about them",
    ),
    "classes_width": (
        "it is too uncertain, and one estimate in ten or more of this width is wrong by a third",
        "they may be wrong by a third or more",
    ),
    "classes_households": (
        "it can be too low by a third, since people of a household were sampled together",
        "they can be too low by a third, since people of a household were sampled together",
    ),
    "classes_divergences": (
        "the sampler went astray in some steps, so its draws may miss a part of what is possible",
        "the sampler went astray in some steps",
    ),
}


def why_not(found: LatentClassRisk, *, public: bool = False) -> str:
    """Say why an estimate is not trusted; empty where it is.

    Parameters
    ----------
    found : LatentClassRisk
        With its checks.
    public : bool
        Whether the public reads it.

    Returns
    -------
    str
        One clause for each reason that holds.
    """
    if found.trusted:
        return ""
    looked = {check.key for check in found.checks if check.verdict != "pass"}
    totals = found.diagnostics.index.str.startswith("tau")
    if bool((found.diagnostics["rhat"][totals] <= AGREE).all()):
        looked.discard("classes_chains")  # they mix slowly, and agree about this number
    told = [words[public] for key, words in REASONS.items() if key in looked]
    return "; ".join(told) or "its checks say why"
