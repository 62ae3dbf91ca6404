"""Labels of groups and of small cells."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import Codes


def group_places(by: Sequence[Codes], n: int) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return for each row the place of its group in the sorted labels, and the labels."""
    if not by:
        return np.zeros(n, dtype=np.intp), ["all"]
    # one number for the labels of all columns, in their order: sorted faster than rows
    packed = np.zeros(n, dtype=np.int64)
    for codes in by:
        packed = np.unique(packed * len(codes.labels) + codes.places, return_inverse=True)[1]
    first = np.full(int(packed.max(initial=-1)) + 1, -1, dtype=np.intp)
    first[packed] = np.arange(n)  # any row of the group will do
    tuples, places = np.column_stack([codes.places for codes in by])[first], packed
    labels = [">".join(c.labels[i] for c, i in zip(by, row, strict=True)) for row in tuples]
    order = np.argsort(np.array(labels, dtype=object), kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[places.ravel()], [labels[i] for i in order]


def labelled_cells(
    rows: npt.NDArray[np.intp],
    froms: Codes,
    tos: Codes,
    by: Sequence[Codes],
    y: npt.NDArray[np.int64],
    source: str,
) -> pd.DataFrame:
    """Return the small cells, sorted and labelled, at these rows of the table.

    Labels name the group only where a pair of areas occurs in several. Two cells, areas or groups
    that get the same label are an error, because a posterior could not tell them apart.
    """
    places, group_labels = group_places(by, len(y))
    if len(set(group_labels)) < len(group_labels):
        raise InputError(_collision(source, "groups"))
    pairs = pd.DataFrame({"origin": froms.places, "destination": tos.places})
    with_group = bool(pairs.duplicated().any())

    order = np.lexsort((tos.places[rows], froms.places[rows], places[rows]))
    rows = rows[order]
    group = np.array(group_labels, dtype=object)[places[rows]]
    origin, destination = froms.texts()[rows], tos.texts()[rows]
    label = origin + ">" + destination
    index = pd.Index(group + "|" + label if with_group else label, name="cell", dtype=str)
    if not index.is_unique:
        raise InputError(_collision(source, "cells"))
    for areas in (origin, destination):
        effects = pd.DataFrame({"group": group, "area": areas}).drop_duplicates()
        if (effects["group"] + "|" + effects["area"]).duplicated().any():
            raise InputError(_collision(source, "areas"))
    return pd.DataFrame(
        {
            "row": rows.astype(np.int64),
            "group": pd.Series(group, index=index, dtype=str),
            "origin": pd.Series(origin, index=index, dtype=str),
            "destination": pd.Series(destination, index=index, dtype=str),
            "y": y[rows],
        },
        index=index,
    )


def _collision(source: str, what: str) -> str:
    return f"{source}: two {what} get the same label, because codes contain '>' or '|'; recode them"
