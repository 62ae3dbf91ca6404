"""What the public reads of each check of a flow table, whose own reason holds exact numbers."""

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.diagnostics import small_by_size
from bayes_sdc.flows.model.parameters import NATION
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.flows.intruder import BELIEVED
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS, PublicShares, usual_noise
from bayes_sdc.report.flows.public_verdicts import OF_FIT, public_fit
from bayes_sdc.report.policy_limits import PUBLIC_REASON, PUBLIC_WORDS, WITHHELD, Told, tell_limit

OF_TRUE_COUNTS = (
    "release_differs",
    "row_order",
    "other_columns",
    "fit",
    "fit_by_size",
    "dispersion",
    "importance_weights",
    "mixing_given_totals",
    "weights",
)
PINNED = "The totals that the release keeps pin small counts: these are released as they are."
NONE_KEPT = "No totals of the table are kept, because they would tell small counts."
NOTHING_SMALL = ("row_order", "other_columns", "small_counts_left")
NO_SMALL = "There are no small counts of flows in the table."
OF_FEW_CELLS = "Not shown, because a verdict on few cells could reveal single cells."
PUBLIC_REASONS = {
    ("convergence", "pass"): "The chains of every group agree.",
    (
        "convergence",
        "look",
    ): "The chains of some groups do not agree as well as they should, or hold "
    "too few independent draws.",
    ("convergence", "fail"): "The chains of some groups disagree, or hold far too few independent "
    "draws: do not rely on the results.",
    ("divergences", "pass"): "No step of the sampler went astray.",
    ("divergences", "look"): "Some steps of the sampler diverged in some groups.",
    ("small_groups", "pass"): "No group has fewer than ten small cells, or one area on a side.",
    ("small_groups", "look"): "Some groups have fewer than ten small cells, or one area on a side: "
    "the prior decides their rates.",
    ("fit", "pass"): "The model reproduces how common each small count is.",
    ("fit", "look"): "The model misses how common some small counts are.",
    ("fit", "fail"): "The model misses how common some small counts are by far.",
    ("fit_by_size", "pass"): "Taken by size of group, the model reproduces how common each small "
    "count is, wherever there are cells enough to tell.",
    ("fit_by_size", "look"): "In groups of some size the model misses how common some "
    "small counts are.",
    ("dispersion", "pass"): "The small counts scatter as the model says.",
    ("dispersion", "look"): "The small counts scatter more or less than the model says.",
    ("dispersion", "fail"): "The small counts scatter much more or less than the model says.",
    ("importance_weights", "pass"): "The weights behind the probabilities are reliable.",
    ("release_differs", "pass"): "Not all released small counts are the true ones.",
    ("release_differs", "fail"): "Too few released small counts differ from the true ones: do not "
    "release.",
    ("guarantee", "pass"): "The promise below holds for exact draws from the posterior.",
    ("guarantee", "fail"): "No promise is made: the section says why.",
    ("row_order", "pass"): "The order of the rows was not found to follow the small counts.",
    ("row_order", "look"): "The order of the rows may tell something about the small counts.",
    ("row_order", "fail"): "The order of the rows tells the small counts: do not release.",
    ("other_columns", "pass"): "No other column was found to go with the small counts.",
    ("other_columns", "look"): "Other columns may tell something about the small counts.",
    ("other_columns", "fail"): "Other columns reveal small counts: do not release.",
    (
        "small_counts_left",
        "pass",
    ): "Every small count is replaced by a synthetic one, or left blank.",
    ("small_counts_left", "look"): "Some small counts are released as they are: of people who "
    "stayed, or with one possible value given the totals that the release keeps.",
    ("small_counts_left", "fail"): "Counts below the smallest one protected are released.",
    ("released_before", "pass"): "An earlier release of this table counts in the risk.",
    ("released_before", "look"): "This table was protected more than once. Whoever has another "
    "release of it knows more than the risk here says, which is that of this release alone.",
    ("totals_kept", "look"): "Some totals are kept in sum only.",
    ("totals_kept", "fail"): "The totals that the release keeps, alone or together with those that "
    "are published beside, pin small counts.",
    (
        "kept_totals_error",
        "pass",
    ): "Every total that the release keeps, of people who moved, is the "
    "true one, or rounds to the same.",
    ("kept_totals_error", "fail"): "Some totals that the release was to keep are not the true "
    "ones.",
    (
        "mixing_given_totals",
        "pass",
    ): "There is no clear sign that longer mixing would leave fewer true counts.",
    ("mixing_given_totals", "look"): "Longer mixing would change the share of true counts.",
    ("mixing_given_totals", "fail"): "The release is not mixed: true counts are left in it.",
    ("published_totals", "pass"): "The totals that are published beside, those that a release "
    "keeps, and the counts that are released as they are, leave every small count more than two "
    "possible values.",
    ("published_totals", "look"): "The totals that are published beside, and those that a release "
    "keeps, leave some small counts at most two possible values, or it could not be found out "
    "exactly.",
    ("published_totals", "fail"): "Some small counts follow from the totals that are published "
    "beside and those that a release keeps.",
    ("weights", "look"): "Some cells weigh less in the model: a release tells less about them. "
    "That is local and asymptotic: judged for this table, and no bound for every table.",
    ("weights", "fail"): "Some cells weigh less in the model, and a release still tells more about "
    "some cells than was wanted.",
    ("importance_weights", "look"): "Some weights behind these probabilities are not reliable.",
}


def tell_check(check: Check, result: Protection, shares: PublicShares) -> Told:
    """Return what the public may read of a check; few cells hide verdicts on true counts."""
    measured = result.measured
    if check.key in OF_TRUE_COUNTS and 0 < result.table.n_small < PUBLIC_CELLS:
        # that weights were used is said in any case, and what they are not
        said = [PUBLIC_REASONS["weights", "look"]] if check.key == "weights" else []
        return Told(check.name, WITHHELD, " ".join([*said, OF_FEW_CELLS]), check.key)
    if (check.key, check.verdict) == ("totals_kept", "look") and result.pinned:
        return Told(check.name, "look", PINNED, check.key)
    if check.key == "totals_kept" and measured is not None and measured.none_kept:
        return Told(check.name, check.verdict, NONE_KEPT, check.key)
    if check.key == "totals_kept" and check.verdict != "fail" and not result.totals_merged:
        return Told(check.name, WITHHELD, PUBLIC_WORDS[WITHHELD], check.key)  # one cell decides
    if check.key == "small_groups" and measured is not None:
        # the check itself would tell that all counts of a large group are at one bound
        small = small_by_size(measured.groups.drop(index=NATION, errors="ignore")).any()
        verdict: Verdict = "look" if small else "pass"
        return Told(check.name, verdict, PUBLIC_REASONS[check.key, verdict], check.key)
    if isinstance(check, LimitCheck):
        return tell_limit(check, at_least=PUBLIC_CELLS)
    if check.key in OF_FIT and measured is not None:
        fit = public_fit(check, measured, shares)
        if fit is None:
            return Told(check.name, WITHHELD, OF_FEW_CELLS, check.key)
        return Told(check.name, fit, PUBLIC_REASONS[check.key, fit], check.key)
    words = PUBLIC_REASONS.get((check.key, check.verdict), PUBLIC_REASON[check.verdict])
    if measured is None and check.verdict == "pass" and check.key in NOTHING_SMALL:
        words = NO_SMALL
    if (check.key, check.verdict) == ("release_differs", "pass") and measured is not None:
        risk = measured.risk
        # printed once more with the risk: with the same noise, or it could be averaged away
        equal = shares.percent(risk.believes_release, risk.rho.sizes["cell"], BELIEVED)
        first = " of the first data set" if risk.datasets > 1 else ""
        by = ": by chance"
        if measured.kept is not None and measured.kept.sides:  # then it is not chance alone
            by = ": some because the kept totals leave them one value" if result.pinned else ""
        words = (
            f"{equal or 'Some'} of the released small counts{first} equal the true ones{by}. The "
            "others differ; this report does not say which."
        )
        if equal:
            noise = usual_noise(risk.rho.sizes["cell"])
            words += f" The share is moved by noise, in 19 of 20 reports by at most {noise}."
    return Told(check.name, check.verdict, words, check.key)


def has_divergences(measured: Measured) -> bool:
    """Whether the sampler has steps that can diverge."""
    return "diverging" in measured.posterior["sample_stats"]
