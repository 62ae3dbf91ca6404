"""Recodings of a run on microdata: coarser levels before it is measured, and what they did."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.stored import Stored
from bayes_sdc.microdata.file.suspects import NEARLY, nearly_unique
from bayes_sdc.microdata.treatment.recoding import read_recoding, recode
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.microdata.treatment.setting import Intruder, prepare
from bayes_sdc.microdata.treatment.utility import TreatedUtility

SINGLE = "single records and small cells"  # a use of a treated file


def recoded_file(data: Microdata, named: Sequence[str]) -> Microdata:
    """Apply recodings that were named, before anything is measured.

    Raises
    ------
    InputError
        If one cannot be understood, or leaves every level as it is.
    """
    for one in named:
        step = read_recoding(data, one)
        labels = data.labels[data.keys.index(step.key)]
        if len({step.levels.get(label, label) for label in labels}) == len(labels):
            raise InputError(
                f"--recode {one} merges no levels: those of {step.key!r} stay apart, so no record "
                "becomes harder to tell; leave it out, or choose other levels"
            )
        data = recode(data, [step]).data
    return data


def what_recoding_did(
    before: Microdata, after: Microdata, named: Sequence[str], *, alone: bool
) -> list[str]:
    """Say what recodings took away before anything was measured; nothing where none was named.

    Parameters
    ----------
    before, after : Microdata
        The file as it came, and the recoded one.
    named : sequence of str
        The recodings.
    alone : bool
        Whether nothing else is done to the file: then nothing comes after them, and nothing is
        judged beside the recoded file.

    Returns
    -------
    list of str
        A note, or none.
    """
    if not named:
        return []
    rare = [data.k_violations(3).records for data in (before, after)]
    said = [f"{key}={Path(how).name}" for key, _, how in (one.partition("=") for one in named)]
    did = (
        f"({'; '.join(said)}): combinations {len(before.combinations):,} -> "
        f"{len(after.combinations):,}, sample uniques {before.sample_uniques:,} -> "
        f"{after.sample_uniques:,}, records with f < 3 {rare[0]:,} -> {rare[1]:,}"
    )
    if alone:
        return [f"recoded {did}"]
    return [
        f"recoded first {did}. What the file is good for is judged beside the recoded file, so it "
        "does not count the detail that the recoding itself took away"
    ]


def recoded_columns(stored: Stored, data: Microdata, named: Sequence[str]) -> Stored:
    """Write the coarser levels into the columns of the file."""
    frame = stored.frame.copy()
    recoded = {one.partition("=")[0] for one in named}
    for key in recoded:
        j = data.keys.index(key)
        texts = np.array([*data.labels[j], ""], dtype=object)[data.codes[:, j]]
        frame[key] = pd.Series(texts, index=frame.index, dtype=str)
    described = stored.described
    if described is not None:  # what the file says of codes that are gone
        for part in ("variable_value_labels", "missing_ranges", "missing_user_values"):
            said = getattr(described, part).items()
            left = {name: given for name, given in said if name not in recoded}
            setattr(described, part, left)
    return replace(stored, frame=frame)


def count_recoding(
    done: Treatment, use: TreatedUtility, as_it_came: Microdata, *, population_size: int | None
) -> tuple[Treatment, TreatedUtility]:
    """Put the file as it came in the place of the recoded one: its risk, and what was changed.

    Parameters
    ----------
    done : Treatment
        Of the recoded file.
    use : TreatedUtility
        The same.
    as_it_came : Microdata
        Before the recoding, with the same keys and records.
    population_size : int or None
        N.

    Returns
    -------
    Treatment
        ``before`` is the risk of the file as it came, unless nearly every record has a value of its
        own there, of which no model says anything.
    TreatedUtility
        Not good for single records, where these have coarser levels than they had.
    """
    came = as_it_came.select(done.data.keys)
    of_key = zip(came.codes.T, done.data.codes.T, strict=True)
    coarser = np.stack([_merged(*codes) for codes in of_key], axis=1)
    done = replace(done, recoded=coarser)
    if any(nearly_unique(*one, NEARLY) for one in zip(came.labels, came.codes.T, strict=True)):
        note = "the risk before is that of the recoded file; that of the file as it came was not "
        done = replace(done, before_recoded=True, notes=(*done.notes, f"{note}measured"))
    else:
        who = Intruder(done.before.keys, done.before.knowledge)
        setting = prepare(
            came, intruder=who, population_size=population_size, structural_zeros=None,
            datasets=1, seed=done.seed,
        )  # fmt: skip
        done = replace(done, before=setting.risk(np.zeros(came.codes.shape, dtype=np.bool_)))
    changed = int(done.changed.sum())
    reason = f"{changed:,} records have coarser levels than they had, or were treated"
    good = [
        one._replace(good=False, reason=reason) if one.use == SINGLE and changed else one
        for one in use.good_for
    ]
    return done, replace(use, good_for=good)


def _merged(came: npt.NDArray[np.int32], now: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Flag the records whose level holds several of those that came."""
    known = (came >= 0) & (now >= 0)
    pairs = np.unique(np.stack([now[known], came[known]]), axis=1)
    held = np.bincount(pairs[0], minlength=int(now.max(initial=0)) + 1)
    return np.asarray(known & (held[np.maximum(now, 0)] > 1))
