"""Each treatment of a file whose model is there: what it does, and what is left of the risk."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.treatment.choosing import choose_keys, choose_records
from bayes_sdc.microdata.treatment.households import shared_keys, spread_over_households
from bayes_sdc.microdata.treatment.intruder import MatchRisk
from bayes_sdc.microdata.treatment.matching import best_of
from bayes_sdc.microdata.treatment.order import in_order
from bayes_sdc.microdata.treatment.pram import match_changed, matrices_of, randomise
from bayes_sdc.microdata.treatment.result import Method
from bayes_sdc.microdata.treatment.setting import MATCHED, Setting
from bayes_sdc.microdata.treatment.suppression import (
    prices_of,
    refuse_own,
    suppress_special_uniques,
    suppress_to_k,
)
from bayes_sdc.microdata.treatment.synthesis import forbidden, order_of_content, synthesise

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

MOST_DATASETS = 100
MOST_ROUNDS = 8  # of hiding more where the target is missed


class Asked(NamedTuple):
    """How strong a treatment is asked for.

    ``target_risk`` and ``share`` choose records, ``keys`` names those to treat, ``datasets`` is m;
    ``k`` and ``special`` are for suppression, with the ``costs`` of keys, ``change`` for PRAM.
    """

    target_risk: float | None = None
    share: float | None = None
    keys: tuple[str, ...] | None = None
    datasets: int = 1
    k: int | None = None
    special: int | None = None
    costs: Mapping[str, float] | None = None
    change: float | None = None

    def check(self, data: Microdata, method: Method, known: Sequence[str] | None = None) -> None:
        """Refuse impossible arguments, before any work.

        Parameters
        ----------
        data : Microdata
            The file.
        method : str
            The treatment.
        known : sequence of str, optional
            Keys that the intruder knows, which are those that suppression treats; by default all.

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
        names = data.keys if known is None else tuple(known)
        for name in names:
            if name not in data.keys:
                raise InputError(
                    f"the intruder knows {name!r}, which is not a key of the file; they are "
                    f"{list(data.keys)}"
                )
        self._check_strength(data, method, names)
        if self.keys is not None and not self.keys:
            raise InputError("keys must name at least one key to treat")
        for key in self.keys or ():
            if key not in data.keys:
                raise InputError(f"{key!r} is not a key of the file; they are {list(data.keys)}")

    def _check_strength(self, data: Microdata, method: Method, known: tuple[str, ...]) -> None:
        """Refuse a strength of another treatment, or none where one is needed."""
        for name, value, of in (
            ("share", self.share, "synthesis"),
            ("k", self.k, "suppression"),
            ("special", self.special, "suppression"),
            ("costs", self.costs, "suppression"),
            ("change", self.change, "pram"),
        ):
            if value is not None and method != of:
                raise InputError(f"{name} belongs to {of}; the method is {method!r}")
        if method == "suppression":
            if (self.k is None) == (self.special is None):
                raise InputError(
                    "suppression needs a goal: either k (--suppress-to-k), the fewest records that "
                    "share their values, or special (--suppress-special), the size of the special "
                    "uniques to take away; a target risk alone sets none"
                )
            if self.k is not None and not 2 <= self.k <= data.n:
                raise InputError(f"k must be from 2 to the {data.n:,} records; it is {self.k!r}")
            if self.special is not None and not 1 <= self.special <= len(known):
                raise InputError(
                    f"special, the size of a special unique, must be from 1 to the "
                    f"{len(known)} keys; it is {self.special!r}"
                )
            refuse_own(data)
            prices_of(known, self.costs)
        if method not in ("synthesis", "pram") and self.keys is not None:
            raise InputError(f"{method} does not treat single keys: leave out keys")
        if method in ("suppression", "recoding") and self.datasets > 1:
            raise InputError(f"{method} draws nothing, so there is one data set")
        if method == "pram" and (self.change is None or not 0.0 < self.change < 1.0):
            raise InputError(
                f"PRAM needs change, the share of values to change, above 0 and below 1; "
                f"it is {self.change!r}"
            )


class Applied(NamedTuple):
    """A treatment that was applied: see :class:`bayes_sdc.Treatment` for its parts."""

    codes: Codes
    hidden: Flags
    after: MatchRisk
    strongest: MatchRisk
    notes: tuple[str, ...] = ()


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


def by_synthesis(setting: Setting, before: MatchRisk, asked: Asked, *, seed: int) -> Applied:
    """Draw chosen keys of chosen records anew, and more of them until the target is reached."""
    chosen = choose_records(before, setting, target_risk=asked.target_risk, share=asked.share)
    hidden = chosen[:, None] & _keys_to_treat(setting, chosen, asked)
    for _ in range(MOST_ROUNDS):
        hidden = spread_over_households(setting.data, hidden)
        applied = drawn(setting, hidden, asked, seed=seed)
        wider = _wider(setting, hidden, applied.after, asked)
        if (wider == hidden).all():
            break
        hidden = wider
    return applied


def drawn(setting: Setting, hidden: Flags, asked: Asked, *, seed: int) -> Applied:
    """Draw hidden values and measure the risk."""
    data = setting.data
    codes = synthesise(
        data, setting.states, hidden=hidden, rules=setting.rules, datasets=asked.datasets, seed=seed
    )
    after, strongest = afterwards(setting, codes, hidden)
    stays = bool((data.codes[hidden.any(axis=1)] < 0).any()) and data.missing != "own"
    notes = ("values that are missing in the file stay missing",) if stays else ()
    return Applied(codes, hidden, after, strongest, notes)


def by_full_synthesis(setting: Setting, before: MatchRisk, asked: Asked, *, seed: int) -> Applied:
    """Draw all keys of all records anew."""
    every = np.ones(setting.data.codes.shape, dtype=np.bool_)
    return drawn(setting, spread_over_households(setting.data, every), asked, seed=seed)


def by_suppression(setting: Setting, before: MatchRisk, asked: Asked, *, seed: int) -> Applied:
    """Set the cheapest values missing."""
    data = setting.data
    order = order_of_content(data, np.arange(data.n))
    known = in_order(setting.known, order)
    if asked.k is not None:
        found = suppress_to_k(known, asked.k, costs=asked.costs)
        aim = f"every record counts k = {asked.k}"
    else:
        assert asked.special is not None  # noqa: S101 - one of both was asked for
        found = suppress_special_uniques(known, asked.special, costs=asked.costs)
        aim = f"no record is unique on {asked.special} keys or fewer"
    hidden = np.zeros(data.codes.shape, dtype=np.bool_)
    hidden[np.ix_(order, [data.keys.index(key) for key in known.keys])] = found.hidden
    risk = setting.risk(hidden)
    least = (
        "no bound is known" if found.bound is None else f"no set costs less than {found.bound:g}"
    )
    number = int(hidden.sum())
    notes = [f"{number:,} values suppressed so that {aim}; they cost {found.cost:g}, {least}"]
    spread = [key for key, one in zip(known.keys, shared_keys(known), strict=True) if one]
    if spread and hidden[:, [data.keys.index(key) for key in spread]].any():
        notes.append(
            f"{', '.join(spread)} is equal within all or nearly all households: where it is "
            "suppressed for one member it is for all, and these values are counted, so that no "
            "member shows it of another"
        )
    codes = np.where(hidden, -1, data.codes).astype(np.int32)[None]
    return Applied(codes, hidden, risk, risk, tuple(notes))


def by_pram(setting: Setting, before: MatchRisk, asked: Asked, *, seed: int) -> Applied:
    """Change values at random, each key by its own invariant matrix."""
    data = setting.data
    named = data.keys if asked.keys is None else asked.keys
    treated = np.array([key in named for key in data.keys])
    if asked.keys is None:
        treated &= setting.is_known
    assert asked.change is not None  # noqa: S101 - was checked
    matrices = matrices_of(data, treated, asked.change)
    codes = randomise(data, matrices, datasets=asked.datasets, seed=seed)
    states = setting.states.thinned(MATCHED)
    matches = match_changed(data, setting.is_known, states, codes, matrices)
    risk = setting.of_matches([matches], "keys")
    notes = ["the intruder knows the matrices"]
    if len(codes) > 1:
        notes.append(
            f"{len(codes)} data sets side by side count as linked, record by record: the intruder "
            "combines what all of them show, and the more there are the less is hidden"
        )
    notes += _changed_less(data, treated, matrices, asked.change)
    if len(setting.rules):
        layout = setting.states.layout
        broken = sum(
            forbidden(row, setting.rules, layout.start) for one in codes for row in layout.rows(one)
        )
        notes.append(f"PRAM knows no structural zeros: {broken:,} released records break one")
    return Applied(codes, (codes != data.codes).any(axis=0), risk, risk, tuple(notes))


def _changed_less(
    data: Microdata, treated: Flags, matrices: Sequence[npt.NDArray[np.float64]], change: float
) -> list[str]:
    """Say of which keys a smaller share of values changes than was asked for, on average."""
    reached = {}
    for j in np.flatnonzero(treated).tolist():
        known = data.codes[:, j][data.codes[:, j] >= 0]
        shares = np.bincount(known, minlength=len(matrices[j])) / max(len(known), 1)
        moved = float(shares.sum() - shares @ np.diag(matrices[j]))
        if moved < change - 1e-9:
            reached[data.keys[j]] = max(moved, 0.0)
    if not reached:
        return []
    told = ", ".join(f"{key} {moved:.1%}" for key, moved in reached.items())
    return [
        f"PRAM was asked to change {change:.1%} of the values, and changes fewer of these keys, "
        f"the most that keeps their shares: {told}"
    ]


def by_recoding(setting: Setting, before: MatchRisk, asked: Asked, *, seed: int) -> Applied:
    """Leave the records as they are: their levels are coarser already."""
    none = np.zeros(setting.data.codes.shape, dtype=np.bool_)
    return Applied(setting.data.codes[None], none, before, before)


APPLY = {
    "recoding": by_recoding,
    "synthesis": by_synthesis,
    "full-synthesis": by_full_synthesis,
    "suppression": by_suppression,
    "pram": by_pram,
}
