"""The PyMC model of the latent classes of a file, to sample, change and look at.

What :func:`bayes_sdc.latent_class_risk` samples by a Gibbs sampler of its own is this model with
many classes; it also takes its traces.
"""

import pymc as pm

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.combinations import cells_of, labels_of


@checked
def latent_class_model(microdata: Microdata, *, classes: int = 10) -> pm.Model:
    """Build the PyMC model of which combinations of key values are plausible.

    Sample it with ``pm.sample``, draw it with ``pm.model_to_graphviz``, or add to it in a ``with``
    block; :func:`bayes_sdc.latent_class_risk` takes its trace. The class of each record is summed
    out. ``pm.sample`` takes NUTS for what is continuous and Metropolis steps for the
    resolutions, which is for small files; the sampler of :func:`bayes_sdc.latent_class_risk` is for
    all.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`. By the rule "own" a missing value is a level of its
        own; by the others it is summed over.
    classes : int
        H, at most so many latent classes, 1 or more.

    Returns
    -------
    pymc.Model
        As :func:`bayes_sdc.models.latent_classes.build_base` has it: ``alpha``, ``eta``, and for
        each key ``log strength``, ``base``, and ``resolution`` and ``own`` levels of each class;
        ``phi``, ``g`` by combination and ``log_likelihood`` derived. Labels of classes switch: look
        at the last two alone.

    Raises
    ------
    InputError
        If an argument is out of range, or a key has one value.

    See Also
    --------
    bayes_sdc.latent_class_risk, bayes_sdc.individual_risk_model, bayes_sdc.uniques_model

    References
    ----------
    D. B. Dunson and C. Xing, "Nonparametric Bayes modeling of multivariate categorical data", JASA
    2009, doi:10.1198/jasa.2009.tm08439.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_microdata
    >>> people = pd.DataFrame({"sex": list("mfmf"), "age": list("2345")})
    >>> model = latent_class_model(read_microdata(people, keys=["sex", "age"]), classes=2)
    >>> model.coords["level of age"]
    ('2', '3', '4', '5')
    """
    from bayes_sdc.models.latent_classes import build_base

    if classes < 1:
        raise InputError(f"classes must be 1 or more; it is {classes!r}")
    cells, labels = cells_of(microdata), labels_of(microdata)
    if lone := [key for key, levels in labels.items() if len(levels) < 2]:
        raise InputError(
            f"key {lone[0]!r} has one value, so that classes cannot differ in it; remedy: leave it "
            "out"
        )
    codes = cells.rows - cells.start[:-1]
    codes[cells.rows < 0] = -1
    return build_base(
        codes,
        cells.records,
        levels=[len(part) for part in labels.values()],
        classes=classes,
        keys=list(labels),
        labels=list(labels.values()),
    )
