r"""Combinations that cannot occur: structural zeros, by records that are added in each sweep.

The mixture of classes gives impossible combinations a probability, pi_0, which it must not. The
records of the file are n draws from the mixture that were possible; drawn one after the other,
there were others among them that were not, and their number is negative binomial. They are drawn by
doing just that: draw from the mixture until n were possible, and keep the others. With them added,
every conditional is that of the model without zeros.

References
----------
D. Manrique-Vallier and J. P. Reiter, "Bayesian estimation of discrete multivariate latent structure
models with structural zeros", Journal of Computational and Graphical Statistics 2014,
doi:10.1080/10618600.2013.844700.
"""

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros, read_rules
from bayes_sdc.microdata.latent_classes.combinations import rows_of_levels
from bayes_sdc.microdata.latent_classes.conditionals import sweep
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.latent_classes.state import State
from bayes_sdc.microdata.latent_classes.unseen import cumulate, draw_row, forbidden

#: Of draws from the mixture, for each record. Where more are impossible the mixture is of no use.
MOST = 100


def rules_for(data: Microdata, structural_zeros: StructuralZeros | None) -> npt.NDArray[np.bool_]:
    """Return for each rule whether it holds for each row of the sampler's tables.

    Parameters
    ----------
    data : Microdata
        The file.
    structural_zeros : data frame or sequence of mappings, optional
        As in :func:`bayes_sdc.allowed_cells`.

    Returns
    -------
    array of bool, shape (rule, row)
        A combination is impossible where a rule holds for all its rows.

    Raises
    ------
    InputError
        If a rule is not valid, or missing values match others, so that a record may be impossible
        in part.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": ["child", "adult", "old"], "wed": ["no", "yes", "no"]})
    >>> data = read_microdata(people, keys=["age", "wed"])  # wed comes first: it has fewer levels
    >>> rules_for(data, [{"age": "child", "wed": "yes"}]).astype(int).tolist()
    [[0, 1, 0, 1, 0]]
    """
    if structural_zeros is None:
        return np.empty((0, 0), dtype=np.bool_)
    if data.missing != "own" and bool((data.codes < 0).any()):
        raise InputError(
            "latent classes take structural zeros only where a missing value is a level of its "
            f"own: by the rule {data.missing!r} a record may be possible in part; remedy: "
            "missing='own'"
        )
    rules, _ = read_rules(structural_zeros, data)
    columns = np.argsort(np.concatenate(rows_of_levels(data)))
    # a rule about values that nobody has forbids nothing that could be drawn
    return np.ascontiguousarray(rules[:, columns])


@compiled
def add_impossible(
    rng: np.random.Generator, n: int, start: np.ndarray, rules: np.ndarray, state: State
) -> int:
    """Draw from the mixture until n combinations were possible; count the others to the classes.

    Returns how many there were, -1 where they are too many to draw.
    """
    keys = len(start) - 1
    of_class, cumulative = cumulate(start, state.eta, state.phi)
    drawn = np.empty(keys, dtype=np.int32)
    possible, others = 0, 0
    while possible < n:
        h = draw_row(rng, rng.random() * of_class[-1], start, of_class, cumulative, drawn)
        if forbidden(drawn, rules):
            others += 1
            if others > MOST * n:
                return -1
            state.size[h] += 1
            for j in range(keys):
                state.counts[drawn[j], h] += 1
        else:
            possible += 1
    return others


@compiled
def sweep_with_zeros(
    rng: np.random.Generator, start: np.ndarray, rows: np.ndarray, shared: np.ndarray,
    records: np.ndarray, rules: np.ndarray, state: State,
) -> int:  # fmt: skip
    """Draw everything once, impossible records last; return their number, or -1."""
    sweep(rng, start, rows, shared, records, state)
    if len(rules) == 0:
        return 0
    n = 0
    for k in range(len(records)):
        n += records[k]
    others: int = add_impossible(rng, n, start, rules, state)
    return others
