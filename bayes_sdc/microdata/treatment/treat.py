"""One call for every treatment: choose, treat, measure again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.keys import Microdata
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros
from bayes_sdc.microdata.treatment.choosing import choose_keys, choose_records
from bayes_sdc.microdata.treatment.intruder import MatchRisk
from bayes_sdc.microdata.treatment.matching import best_of
from bayes_sdc.microdata.treatment.result import METHODS, Method, Treatment
from bayes_sdc.microdata.treatment.setting import Intruder, Setting, prepare
from bayes_sdc.microdata.treatment.synthesis import spread_over_households, synthesise
from bayes_sdc.seeds import seed_or_fresh

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

MOST_DATASETS = 100
MOST_ROUNDS = 8  # of hiding more where the target is missed


class Asked(NamedTuple):
    """How strong a treatment is asked for.

    ``target_risk`` and ``share`` choose records, ``keys`` names those to treat, ``datasets`` is m.
    """

    target_risk: float | None = None
    share: float | None = None
    keys: tuple[str, ...] | None = None
    datasets: int = 1

    def check(self, data: Microdata, method: Method) -> None:
        """Refuse what cannot be meant, before any work.

        Raises
        ------
        InputError
            Naming the argument.
        """
        if not 1 <= self.datasets <= MOST_DATASETS:
            raise InputError(f"datasets must be from 1 to {MOST_DATASETS}; it is {self.datasets!r}")
        if self.target_risk is not None and self.share is not None:
            raise InputError("target_risk and share both choose records: give one of them")
        if self.target_risk is not None and not 0.0 <= self.target_risk < 1.0:
            raise InputError(f"target_risk must be from 0 to below 1; it is {self.target_risk!r}")
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise InputError(f"share must be above 0 and at most 1; it is {self.share!r}")
        if method == "full-synthesis" and not (self.keys is None and self.share is None):
            raise InputError("full synthesis treats all keys of all records: leave out keys, share")
        if self.keys is not None and not self.keys:
            raise InputError("keys must name at least one key to treat")
        for key in self.keys or ():
            if key not in data.keys:
                raise InputError(f"{key!r} is no key of the file; they are {list(data.keys)}")


@checked
def treat(
    microdata: Microdata,
    *,
    method: Method = "synthesis",
    target_risk: float | None = None,
    share: float | None = None,
    keys: Sequence[str] | None = None,
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
    method : {"synthesis", "full-synthesis"}
        ``"synthesis"``: chosen keys of chosen records are drawn from the posterior predictive of
        the latent-class model given what stays. ``"full-synthesis"``: all keys of all records.
        A missing value stays missing.
    target_risk : float, optional
        Records with a risk above it are treated, and the risk afterwards is judged by it.
    share : float, optional
        The riskiest share of records is treated. With neither it is the sample uniques.
    keys : sequence of str, optional
        Keys to treat. By default so few as lower the risk of the treated records to the target
        (0.05 without one), chosen one by one, and more where the target is missed nevertheless. A
        key that is equal within all households is drawn once for a household.
    datasets : int
        m, data sets that are released side by side.
    intruder : Intruder, optional
        What they know; by default all keys, not whether the target is in the file, and not which
        records were treated.
    population_size : int, optional
        N, in place of the sum of the weights. Without both the file is the whole population.
    structural_zeros : data frame, or sequence of mappings, optional
        Impossible combinations, as for :func:`bayes_sdc.lancaster`; none is drawn.
    seed : int, optional
        Everything random follows from it; by default a fresh one of 128 bits. Who knows it can draw
        the same values, so it is confidential.
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
    >>> from bayes_sdc.microdata.file.keys import read_microdata
    >>> rng = np.random.default_rng(1)
    >>> people = pd.DataFrame(rng.integers(0, 4, (300, 4)), columns=list("abcd"))
    >>> data = read_microdata(people, keys=list("abcd"))
    >>> done = treat(data, target_risk=0.1, population_size=3000, seed=1)
    >>> done.after.expected.value < done.before.expected.value, len(done.released)
    (True, 300)
    """
    asked = Asked(target_risk, share, None if keys is None else tuple(keys), datasets)
    asked.check(microdata, method)
    who = intruder or Intruder()
    notes = []
    if datasets > 1 and who.knows == "keys":
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
    """Treat a file whose model is there already.

    Raises
    ------
    InputError
        As for :func:`treat`.
    """
    data = setting.data
    before = setting.risk(np.zeros(data.codes.shape, dtype=np.bool_))
    chosen = choose_records(before, setting, target_risk=asked.target_risk, share=asked.share)
    hidden = np.ones(data.codes.shape, dtype=np.bool_)
    if method == "synthesis":
        hidden = chosen[:, None] & _keys_to_treat(setting, chosen, asked)
    for _ in range(MOST_ROUNDS):
        hidden = spread_over_households(data, hidden)
        codes = synthesise(
            data, setting.states, hidden=hidden, rules=setting.rules, datasets=asked.datasets,
            seed=seed,
        )  # fmt: skip
        after, strongest = afterwards(setting, codes, hidden)
        wider = _wider(setting, hidden, after, asked)
        if (wider == hidden).all():
            break
        hidden = wider
    more = [*setting.notes, *notes]
    if (data.codes[hidden.any(axis=1)] < 0).any() and data.missing != "own":
        more.append("values that are missing in the file stay missing")
    return Treatment(
        data=data,
        method=method,
        codes=codes,
        hidden=hidden,
        before=before,
        after=after,
        strongest=strongest,
        checks=[*setting.checks(), *judge(after, strongest, asked.target_risk)],
        seed=seed,
        target_risk=asked.target_risk,
        notes=tuple(more),
    )


def _keys_to_treat(setting: Setting, chosen: Flags, asked: Asked) -> Flags:
    data = setting.data
    if asked.keys is None:
        target = 0.05 if asked.target_risk is None else asked.target_risk
        return choose_keys(setting, chosen, target_risk=target)
    return np.array([key in asked.keys for key in data.keys])


def _wider(setting: Setting, hidden: Flags, after: MatchRisk, asked: Asked) -> Flags:
    """Hide more of the records that are still above the target: all that may be treated.

    Where the intruder knows which records were treated a record is safe only among others that hide
    the same, so then all treated records hide one more key.
    """
    if asked.target_risk is None:
        return hidden
    above = after.records["risk"].to_numpy() > asked.target_risk
    used = hidden.any(axis=0)
    may = setting.is_known if asked.keys is None else used
    chosen = hidden[:, may].any(axis=1) | above
    if setting.intruder.knows == "keys":
        return spread_over_households(setting.data, hidden | (above[:, None] & may))
    if asked.keys is None and above.any():
        used = choose_keys(setting, chosen, target_risk=asked.target_risk, treated=used)
    return spread_over_households(setting.data, hidden | (chosen[:, None] & used))


def afterwards(setting: Setting, codes: Codes, hidden: Flags) -> tuple[MatchRisk, MatchRisk]:
    """Risk by the intruder that was asked for, and by one who knows which records were treated.

    Where records hide different sets of keys, an intruder who does not know which records were
    treated takes each set in turn for the one of all; what counts is the best guess by any.
    """
    strongest = setting.risk(hidden)
    if setting.intruder.knows == "records" or not hidden.any():
        return strongest, strongest
    share = float(hidden.any(axis=1).mean())
    sets = np.unique(hidden[hidden.any(axis=1)], axis=0)
    matches = [
        best_of(
            [
                setting.match(np.broadcast_to(one, hidden.shape), released=released, share=share)
                for one in sets
            ]
        )
        for released in codes
    ]
    return setting.of_matches(matches, "keys"), strongest


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


__all__ = ["METHODS", "apply", "treat"]
