"""The PyMC model of the concentration of a table without structure.

What :func:`bayes_sdc.learn_uniques` integrates is this model; it also takes its traces.
"""

from collections.abc import Mapping

import pandas as pd
import pymc as pm

from bayes_sdc.arguments import checked
from bayes_sdc.microdata.uniques.unstructured import check_size_indices


@checked
def uniques_model(size_indices: pd.Series | Mapping[int, int], K: int) -> pm.Model:
    """Build the PyMC model of how evenly people are spread over the cells.

    Sample it with ``pm.sample``, draw it with ``pm.model_to_graphviz``, or add to it in a ``with``
    block; :func:`bayes_sdc.learn_uniques` takes its trace.

    Parameters
    ----------
    size_indices : Series or mapping
        Number of cells by the number of sampled members in them, sizes from 1 as index or keys.
    K : int
        Cells that can be occupied, without structural zeros.

    Returns
    -------
    pymc.Model
        As :func:`bayes_sdc.models.uniques.build_concentration` has it: free ``log_concentration``
        and the ``concentration`` of it.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bayes_sdc.learn_uniques, bayes_sdc.individual_risk_model

    References
    ----------
    A. Cohen, H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables".

    Examples
    --------
    >>> model = uniques_model({1: 20, 2: 5}, 100)
    >>> [variable.name for variable in model.free_RVs]
    ['log_concentration']
    """
    from bayes_sdc.models.uniques import build_concentration

    sizes, cells, _ = check_size_indices(size_indices, K)
    return build_concentration(sizes, cells, K)
