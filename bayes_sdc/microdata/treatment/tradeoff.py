"""All treatments at several strengths: what is left of the risk, and what was paid."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.treatment.methods import Asked
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.microdata.treatment.setting import Intruder, prepare
from bayes_sdc.microdata.treatment.treat import apply
from bayes_sdc.microdata.treatment.utility import treated_utility
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import seed_or_fresh

STRENGTHS: dict[str, tuple[float, ...]] = {
    "synthesis": (0.2, 0.1, 0.05),
    "full-synthesis": (1.0,),
    "suppression": (2, 3, 5),
    "pram": (0.05, 0.15, 0.3),
}


@checked
def compare_treatments(
    microdata: Microdata,
    *,
    strengths: Mapping[str, Sequence[float]] | None = None,
    datasets: int = 1,
    intruder: Intruder | None = None,
    population_size: int | None = None,
    seed: int | None = None,
    cores: int | None = None,
) -> pd.DataFrame:
    """Treat a file in every way at several strengths, and compare risk and utility.

    The model is fitted once. What is compared is what each treatment reaches, not what it was asked
    for: a target that is missed shows.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    strengths : mapping from method to numbers, optional
        ``target_risk`` of "synthesis", ``k`` of "suppression", ``change`` of "pram"; one number of
        no meaning for "full-synthesis". By default three of each.
    datasets : int
        m of the treatments that draw; more than 1 shows which records were treated, and the
        intruder combines what those of PRAM show of a record.
    intruder : Intruder, optional
        As for :func:`bayes_sdc.treat`.
    population_size : int, optional
        N, in place of the sum of the weights.
    seed : int, optional
        Everything random follows from it; by default a fresh one.
    cores : int, optional
        Threads; the answer is the same for any number.

    Returns
    -------
    DataFrame
        One row per treatment, the untreated file first. ``method``, ``strength``; ``expected``
        right matches with ``expected_low`` and ``expected_high`` (90 %), ``highest`` risk of a
        record, ``strongest`` (expected matches if the treated records are known), ``true_rate``,
        ``false_rate`` (NaN where undefined), ``treated`` (share of records), ``two_way`` and
        ``three_way`` (mean total variation of tables; NaN with fewer keys), ``pmse_ratio`` (NaN
        where undefined),
        ``rare_kept`` (share of rare levels). ``attrs["left_out"]`` says, in a sentence each, which
        of the defaults were not tried, and why.

    Raises
    ------
    InputError
        If a method is unknown or a strength impossible.

    See Also
    --------
    bayes_sdc.treat, bayes_sdc.treated_utility, bayes_sdc.plot_treatments

    References
    ----------
    G. T. Duncan, S. A. Keller-McNulty and S. L. Stokes, "Disclosure risk vs. data utility: the R-U
    confidentiality map", NISS technical report 121, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> rng = np.random.default_rng(1)
    >>> people = pd.DataFrame(rng.integers(0, 3, (200, 3)), columns=list("abc"))
    >>> data = read_microdata(people, keys=list("abc"))
    >>> frame = compare_treatments(
    ...     data, strengths={"suppression": [2, 3]}, population_size=2000, seed=1
    ... )
    >>> frame["strength"].tolist()[1:], bool(frame["two_way"].is_monotonic_increasing)
    ([2.0, 3.0], True)
    """
    if datasets < 1:
        raise InputError(f"datasets must be at least 1; it is {datasets}")
    who = intruder or Intruder()
    wanted, left_out = _wanted(microdata, strengths, datasets, who)
    seed = seed_or_fresh(seed)
    if datasets > 1:
        who = Intruder(who.keys, who.knowledge, "records")
    setting = prepare(
        microdata, intruder=who, population_size=population_size, structural_zeros=None,
        datasets=datasets, seed=seed, cores=cores,
    )  # fmt: skip
    with Progress(len(wanted), "treatments") as progress:

        def one(method: str, number: float, asked: Asked) -> dict[str, Any]:
            done = apply(setting, method, asked, seed=seed)  # type: ignore[arg-type]
            row = _row(method, number, done)
            progress.advance(1)
            return row

        with ThreadPoolExecutor(threads(cores)) as pool:
            rows = list(pool.map(lambda each: one(*each), wanted))
    untreated = apply(setting, "recoding", Asked(), seed=seed)
    frame = pd.DataFrame([_row("untreated", float("nan"), untreated), *rows])
    frame.attrs["left_out"] = left_out
    return frame


def _wanted(
    microdata: Microdata,
    strengths: Mapping[str, Sequence[float]] | None,
    datasets: int,
    who: Intruder,
) -> tuple[list[tuple[str, float, Asked]], list[str]]:
    """List what is to be tried, and say which defaults cannot be: what was named must be possible.

    Raises
    ------
    InputError
        Naming the method.
    """
    if strengths is not None and not sum(len(_numbers(*one)) for one in strengths.items()):
        raise InputError(
            "strengths names no treatment with a strength, as in {'suppression': [3]}; leave it "
            "out to try all"
        )
    wanted, left_out = [], []
    for method, numbers in (STRENGTHS if strengths is None else strengths).items():
        for number in numbers:
            asked = Asked(
                datasets=datasets if method != "suppression" else 1,
                target_risk=number if method == "synthesis" else None,
                k=int(number) if method == "suppression" else None,
                change=number if method == "pram" else None,
            )
            try:
                asked.check(microdata, method, who.keys)  # type: ignore[arg-type]
            except InputError as error:
                if strengths is not None:
                    raise
                left_out.append(f"{method} of strength {number:g} was not tried: {error}")
                continue
            wanted.append((method, float(number), asked))
    return wanted, left_out


def _numbers(method: str, numbers: Sequence[float]) -> Sequence[float]:
    """Return the strengths of a method, if they are numbers, and whole where they are k."""
    if method not in STRENGTHS:
        raise InputError(f"method {method!r} is unknown; choose from {list(STRENGTHS)}")
    kinds = (int, float, np.integer, np.floating)
    if isinstance(numbers, str | Mapping) or np.ndim(numbers) != 1:
        raise InputError(
            f"strengths of {method!r} must be a list of numbers, as [{STRENGTHS[method][0]:g}]; "
            f"they are {numbers!r}"
        )
    for number in numbers:
        if isinstance(number, bool | np.bool_) or not isinstance(number, kinds):
            raise InputError(f"a strength of {method!r} must be a number; it is {number!r}")
        if method == "suppression" and not float(number).is_integer():
            raise InputError(f"k of suppression must be a whole number; it is {number!r}")
    return numbers


def _row(method: str, strength: float, done: Treatment) -> dict[str, Any]:
    use, after = treated_utility(done), done.after
    low, high = after.expected.interval
    return {
        "method": method,
        "strength": strength,
        "expected": after.expected.value,
        "expected_low": low,
        "expected_high": high,
        "highest": after.highest,
        "strongest": done.strongest.expected.value,
        "true_rate": after.true_rate,
        "false_rate": _or_nan(after.false_rate),
        "treated": float(done.treated.mean()),
        "two_way": _or_nan(use.distance(2)),
        "three_way": _or_nan(use.distance(3)),
        "pmse_ratio": _or_nan(use.pmse_ratio),
        "rare_kept": _or_nan(float(use.levels["kept"].mean()) if len(use.levels) else None),
    }


def _or_nan(number: float | None) -> float:
    return float("nan") if number is None else number
