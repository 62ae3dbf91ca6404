"""Codes that are sums of some others that neither a column nor their first characters group."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp

from bayes_sdc.flows.audit.inside.codes import Hit, family_of
from bayes_sdc.flows.audit.inside.rows import SURE, InsideTotal, Rows, surprise
from bayes_sdc.flows.table.families import Ints, keyed, sums_of

LARGEST_CODES = 60  # codes that are tried as subtotals
MOST_MEMBERS = 400  # codes among which those of such a subtotal are sought


def subtotals(rows: Rows, axis: str, by: Sequence[str]) -> list[InsideTotal]:
    """Find codes that are sums of others which no column and no first characters group."""
    found: list[InsideTotal] = []
    key, labels = keyed([rows.texts[name] for name in by], len(rows.counts))
    code, codes = pd.factorize(rows.texts[axis], sort=True)
    for own_area in (False, True) if rows.own.any() else (False,):
        member = np.flatnonzero(~rows.total & (~rows.own | own_area))
        pair, pairs = pd.factorize(key[member] * len(codes) + code[member], sort=True)
        value = sums_of(pair.astype(np.int64), rows.counts[member], len(pairs))
        of_key, of_code = np.divmod(np.asarray(pairs, dtype=np.int64), len(codes))
        size = sums_of(of_code, value, len(codes))
        # smaller ones first: those above them are made of the same codes
        for target in np.argsort(-size, kind="stable")[:LARGEST_CODES][::-1]:
            members = _members_of(of_key, of_code, value, (len(labels), len(codes)), int(target))
            if members is None:
                continue
            # any subset of the codes could have added up
            strange = surprise(rows, value[of_code == target]) - len(codes) - np.log2(len(codes))
            if not rows.doubtful and strange < SURE:
                continue
            own_rows = np.flatnonzero((code == target) & ~rows.total)
            hit = Hit(int(target), len(own_rows), len(own_rows), 1, own_area, float(strange))
            named = " and ".join([*by, f"{len(members)} codes of {axis}"])
            family = family_of(rows, key, labels, own_rows, hit, named)
            of = np.where(np.isin(code, members), family.of, -1)
            found.append(
                InsideTotal(
                    axis, str(codes[target]), own_rows, family._replace(of=of),
                    len(own_rows), len(own_rows), hit.bits,
                )
            )  # fmt: skip
            rows.total[own_rows] = True
            value[of_code == target] = 0
    return found


def _members_of(
    key: Ints, code: Ints, value: Ints, shape: tuple[int, int], target: int
) -> Ints | None:
    """Find the codes whose counts add up to those of one code in every key, if chance cannot."""
    keys, codes = shape
    total = np.zeros(keys, dtype=np.int64)
    total[key[code == target]] = value[code == target]
    if (total > 0).sum() < 3:
        return None
    larger = np.bincount(code[value > total[key]], minlength=codes) > 0
    there = np.bincount(code[value > 0], minlength=codes) > 0
    members = np.flatnonzero(there & ~larger)
    members = members[members != target]
    bits = float(np.log2(total + 1.0).sum()) - len(members) - np.log2(codes)
    if not 2 <= len(members) <= MOST_MEMBERS or bits < 8.0:
        return None
    position = np.full(codes, -1)
    position[members] = np.arange(len(members))
    inside = position[code] >= 0
    matrix = np.zeros((keys, len(members)), dtype=np.int64)
    matrix[key[inside], position[code[inside]]] = value[inside]
    if (matrix.sum(axis=1) < total).any():
        return None
    matrix_of: Any = matrix.astype(np.float64)
    found = milp(
        np.zeros(len(members)),
        constraints=LinearConstraint(matrix_of, total, total),
        bounds=Bounds(0, 1),
        integrality=np.ones(len(members), dtype=np.int64),
        options={"node_limit": 200},
    )
    chosen = np.flatnonzero(np.rint(found.x) == 1) if found.x is not None else members[:0]
    if len(chosen) < 2 or (matrix[:, chosen].sum(axis=1) != total).any():
        return None
    return np.asarray(members[chosen], dtype=np.int64)
