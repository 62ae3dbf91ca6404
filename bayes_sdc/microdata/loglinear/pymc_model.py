"""The PyMC model of the frequencies of a file, to sample, change and look at.

It is the log-linear model of :func:`bayes_sdc.loglinear_risk` with what is known of it after the
file in place of one fit; that function also takes its traces.
"""

from collections.abc import Collection, Sequence

import pymc as pm

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.loglinear.risk import does_not_apply
from bayes_sdc.microdata.loglinear.table import names_of, table_of


@checked
def loglinear_model(
    microdata: Microdata,
    *,
    interactions: Collection[Sequence[str]] = (),
    dispersed: bool = True,
    seed: int = 0,
) -> pm.Model:
    """Build the PyMC model of the frequencies of all combinations of key values.

    Sample it with ``pm.sample``, draw it with ``pm.model_to_graphviz``, or add to it in a ``with``
    block; :func:`bayes_sdc.loglinear_risk` takes its trace. All effects of single keys have one
    half-normal scale, all of pairs another, all of triples a third.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`; a missing value is a level of its own.
    interactions : collection of sequences of str
        Pairs and triples of keys that interact.
    dispersed : bool
        Whether frequencies scatter about the mean, by a negative binomial distribution.
    seed : int
        Of the cells drawn to stand for those that nobody has, in tables of more than 100,000
        cells: the same as that of :func:`bayes_sdc.loglinear_risk`.

    Returns
    -------
    pymc.Model
        As :func:`bayes_sdc.models.loglinear.build_loglinear` has it.

    Raises
    ------
    InputError
        If there are fewer than two keys, an interaction is not of two or three of them, or missing
        values match others by the rule of the file.

    See Also
    --------
    bayes_sdc.loglinear_risk, bayes_sdc.latent_class_model

    References
    ----------
    C. Carota, M. Filippone, R. Leombruni, S. Polettini 2015, Annals of Applied Statistics,
    doi:10.1214/15-AOAS807.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_microdata
    >>> people = pd.DataFrame({"sex": list("mfmf"), "age": list("2344")})
    >>> model = loglinear_model(
    ...     read_microdata(people, keys=["sex", "age"]), interactions=[("sex", "age")]
    ... )
    >>> [name for name in model.named_vars if name.startswith("scale")]
    ['scale of keys', 'scale of pairs']
    """
    from bayes_sdc.models.loglinear import build_loglinear

    if len(microdata.keys) < 2:
        raise InputError("a log-linear model needs two keys or more")
    if why := does_not_apply(microdata):
        raise InputError(f"a log-linear model does not apply: {why}")
    table = table_of(microdata, seed=seed)
    terms: list[tuple[int, ...]] = [(j,) for j in range(len(microdata.keys))]
    for names in interactions:
        if isinstance(names, str) or not {*names} <= {*microdata.keys}:
            raise InputError(f"interactions must name keys of the file; one of them is {names!r}")
        term = tuple(sorted(microdata.keys.index(name) for name in names))
        if len(set(term)) != len(term) or len(term) not in (2, 3) or term in terms:
            raise InputError(
                f"an interaction is of two or three different keys, given once; one is {names!r}"
            )
        terms.append(term)
    return build_loglinear(
        table.codes, table.f, levels=table.levels, terms=terms, weight=table.weight,
        dispersed=dispersed, keys=microdata.keys, cells=names_of(table),
    )  # fmt: skip
