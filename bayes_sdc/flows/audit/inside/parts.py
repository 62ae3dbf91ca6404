"""Totals split over several codes that are called totals: ``Total male`` and ``Total female``.

No code alone is the sum of the others, but all of them together are. They are sought only among
codes whose name holds a word for a total, because some codes of any table add up to others.
"""

import re

import numpy as np

from bayes_sdc.flows.audit.inside.codes import codes_that_are_sums
from bayes_sdc.flows.audit.inside.rows import WORDS, InsideTotal, Rows, called_total

HOLDS_WORD = re.compile(rf"(?<![^\W\d_])({WORDS})(?![^\W\d_])", re.IGNORECASE)
SHOWN = 4  # codes that are listed


def totals_in_parts(rows: Rows, axis: str) -> list[InsideTotal]:
    """Find codes of one column whose names hold a word for a total, and which add up together."""
    texts = rows.texts[axis].astype(str).astype(object)
    codes = sorted(code for code in set(texts[~rows.total]) if _partly_called(code))
    if len(codes) < 2:
        return []
    more = f" + {len(codes) - SHOWN:,} more" if len(codes) > SHOWN else ""
    name = " + ".join(codes[:SHOWN]) + more
    if name in set(texts):
        return []
    together = np.where(np.isin(texts, codes), name, texts)
    # others that add up were found before, code by code
    known = rows._replace(texts={**rows.texts, axis: together}, total=rows.total.copy())
    found = [each for each in codes_that_are_sums(known, axis) if each.code == name]
    for each in found:
        rows.total[each.rows] = True
    return found


def _partly_called(code: str) -> bool:
    """Whether a name holds a word for a total, and more; ``Totalville`` does not.

    Examples
    --------
    >>> [_partly_called(name) for name in ("Total male", "Gesamt (m)", "Total", "Totalville")]
    [True, True, False, False]
    """
    return not called_total(code) and HOLDS_WORD.search(code) is not None
