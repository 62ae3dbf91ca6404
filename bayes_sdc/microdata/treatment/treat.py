"""One call for every treatment: choose, treat, measure again."""

from collections.abc import Mapping, Sequence

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros
from bayes_sdc.microdata.treatment.intruder import MatchRisk
from bayes_sdc.microdata.treatment.methods import APPLY, Asked
from bayes_sdc.microdata.treatment.result import Method, Treatment
from bayes_sdc.microdata.treatment.setting import Intruder, Setting, prepare
from bayes_sdc.seeds import seed_or_fresh


@checked
def treat(
    microdata: Microdata,
    *,
    method: Method = "synthesis",
    target_risk: float | None = None,
    share: float | None = None,
    keys: Sequence[str] | None = None,
    k: int | None = None,
    special: int | None = None,
    costs: Mapping[str, float] | None = None,
    change: float | None = None,
    datasets: int = 1,
    intruder: Intruder | None = None,
    population_size: int | None = None,
    structural_zeros: StructuralZeros | None = None,
    seed: int | None = None,
    cores: int | None = None,
) -> Treatment:
    """Treat the records at risk of a file, and measure the risk again.

    The keys of the file are all variables of the model. Those that the intruder knows are named in
    ``intruder``; the others stay as they are unless they are named in ``keys``, and inform about
    what is drawn.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    method : {"synthesis", "full-synthesis", "suppression", "pram", "recoding"}
        ``"synthesis"``: chosen keys of chosen records are drawn from the posterior predictive of
        the latent-class model given what stays. ``"full-synthesis"``: all keys of all records.
        ``"suppression"``: the cheapest values are set missing. ``"pram"``: values of the keys are
        changed at random, with invariant matrices. ``"recoding"``: nothing more than was recoded
        before. A value that is missing in the file stays missing; only by the rule "own", where
        missing is a level like others, synthesis can draw a value in its place, or missing in place
        of a value.
    target_risk : float, optional
        Synthesis treats records with a risk above it; the risk afterwards is judged by it.
    share : float, optional
        Synthesis treats this share of records, the riskiest. With neither it is the sample uniques.
    keys : sequence of str, optional
        Keys to treat. By default so few as lower the risk of the treated records to the target
        (0.05 without one), chosen one by one, and more where the target is missed nevertheless. A
        key that is equal within all or nearly all households is drawn once for a household.
    k : int, optional
        Suppression: every record is to count k, by the rule "conservative".
    special : int, optional
        Suppression: no record is to be unique on a set of so many keys or fewer.
    costs : mapping from key to float, optional
        Suppression: what a value of a key is worth; 1 where it is not named.
    change : float, optional
        PRAM: the share of values of each key to change.
    datasets : int
        m, data sets that are released side by side. They tell more than one: which records were
        treated by synthesis, and by PRAM what all of them show of a record together.
    intruder : Intruder, optional
        What they know; by default all keys, not whether the target is in the file, and not which
        records were treated.
    population_size : int, optional
        N, in place of the sum of the weights. Without both the file is the whole population.
    structural_zeros : data frame, or sequence of mappings, optional
        Impossible combinations, as for :func:`bayes_sdc.lancaster`; none is drawn.
    seed : int, optional
        Everything random follows from it; by default a fresh one of 128 bits. Anyone who knows it
        can draw the same values, so it is confidential.
    cores : int, optional
        Threads; the answer is the same for any number.

    Returns
    -------
    Treatment
        ``released``, ``before``, ``after`` and what was changed.

    Raises
    ------
    InputError
        If an argument cannot be used, two contradict each other, or a rule leaves hardly a possible
        value for a record.

    See Also
    --------
    bayes_sdc.latent_class_risk, bayes_sdc.measure_microdata

    References
    ----------
    J. P. Reiter, "Inference for partially synthetic, public use microdata sets", Survey Methodology
    2003. J. P. Reiter and R. Mitra, "Estimating risks of identification disclosure in partially
    synthetic data", Journal of Privacy and Confidentiality 2009, doi:10.29012/jpc.v1i1.567.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> rng = np.random.default_rng(1)
    >>> people = pd.DataFrame(rng.integers(0, 4, (300, 4)), columns=list("abcd"))
    >>> data = read_microdata(people, keys=list("abcd"))
    >>> done = treat(data, target_risk=0.1, population_size=3000, seed=1)
    >>> done.after.expected.value < done.before.expected.value, len(done.released)
    (True, 300)
    """
    asked = Asked(
        target_risk,
        share,
        None if keys is None else tuple(keys),
        datasets,
        k,
        special,
        costs,
        change,
    )
    who = intruder or Intruder()
    asked.check(microdata, method, who.keys)
    notes = []
    if datasets > 1 and who.knows == "keys" and method != "pram":
        who = Intruder(who.keys, who.knowledge, "records")
        notes.append(
            f"{datasets} data sets side by side show which records were treated, so the intruder "
            "knows"
        )
    seed = seed_or_fresh(seed)
    setting = prepare(
        microdata,
        intruder=who,
        population_size=population_size,
        structural_zeros=structural_zeros,
        datasets=datasets,
        seed=seed,
        cores=cores,
    )
    return apply(setting, method, asked, seed=seed, notes=notes)


def apply(
    setting: Setting, method: Method, asked: Asked, *, seed: int, notes: Sequence[str] = ()
) -> Treatment:
    """Treat a file whose model already exists.

    Raises
    ------
    InputError
        As for :func:`treat`.
    """
    before = setting.risk(np.zeros(setting.data.codes.shape, dtype=np.bool_))
    done = APPLY[method](setting, before, asked, seed=seed)
    return Treatment(
        data=setting.data,
        method=method,
        codes=done.codes,
        hidden=done.hidden,
        before=before,
        after=done.after,
        strongest=done.strongest,
        checks=[
            *setting.checks(hidden=bool(done.hidden.any())),
            *judge(done.after, done.strongest, asked.target_risk),
        ],
        seed=seed,
        target_risk=asked.target_risk,
        notes=(*setting.notes, *notes, *done.notes),
    )


def judge(after: MatchRisk, strongest: MatchRisk, target: float | None) -> list[Check]:
    """Judge the risk afterwards by the target; without one nothing is judged.

    Examples
    --------
    >>> judge(None, None, None)  # type: ignore[arg-type]
    []
    """
    if target is None:
        return []
    above, still = after.above(target), strongest.above(target)
    text = (
        f"the highest risk of a record is {after.highest:.4g}, the target {target:g}; "
        f"{above:,} records are above it"
    )
    if after.knows == "keys":
        text += f", and {still:,} for an intruder who knows which records were treated"
    return [
        Check(
            "target risk", "fail" if above else "look" if still else "pass", text,
            key="treatment_target",
        )
    ]  # fmt: skip
