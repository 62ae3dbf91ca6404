"""Reading microdata: a file or a data frame becomes codes of key variables, weights, households."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.microdata.file.columns import declared_missing
from bayes_sdc.microdata.file.combinations import RULES, MissingRule, combine
from bayes_sdc.microdata.file.formats import load_columns
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.records import check_keys, check_roles, read_records


@checked
def read_microdata(
    source: Any,
    *,
    keys: Sequence[str],
    weight: str | None = None,
    household: str | Sequence[str] | None = None,
    missing: MissingRule = "wildcard",
    missing_codes: Mapping[str, Any] | Sequence[Any] | None = None,
    form: FileForm | None = None,
    bands: Mapping[str, Any] | None = None,
) -> Microdata:
    """Read records and tabulate the combinations of their key variables.

    Parameters
    ----------
    source : path or data frame
        CSV (also gzipped), Parquet, Stata (.dta), SPSS (.sav, .zsav, .por), SAS (.sas7bdat), or a
        data frame of any kind that narwhals knows. Only the named columns are read. Codes stay
        text.
    keys : sequence of str
        Key variables: what somebody could know of a person in the file.
    weight : str, optional
        Column of sampling weights, above 0. Without it each record stands for itself, and F = f.
    household : str or sequence of str, optional
        Column that is equal for the members of a household; several, such as area and number, where
        they tell households apart only together. One of several may be a key.
    missing : {"wildcard", "own", "conservative"}
        What a missing value matches: every value, so that both records of a pair count for each
        other; only another missing value; or, for its own record alone, every value.
    missing_codes : mapping from column to code or codes, or sequence of codes for all keys
        Values that stand for a missing one. Empty and blank cells always do; ``-999`` does only
        when it is declared, and then as ``-999.0`` too. The mapping may also name the household
        column: a person with such a code shares no household.
    form : FileForm, optional
        How the file is to be read, where it does not say so itself.
    bands : mapping, optional
        Classes of key variables that are nearly unique: a width as ``{"age": 5}``, ``"q10"`` for
        ten classes of as many records each, or ``"year"`` or ``"month"`` of dates.

    Returns
    -------
    Microdata
        Codes and combinations; nothing is dropped.

    Raises
    ------
    InputError
        If the source or an argument cannot be used. One error lists every kind of problem, with
        rows and remedy.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.measure_microdata

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame(
    ...     {"sex": list("mmmf"), "age": ["20", "30", None, "20"], "w": [10.5, 20, 15, 30]}
    ... )
    >>> data = read_microdata(people, keys=["sex", "age"], weight="w")
    >>> data.f.tolist(), data.F.tolist()
    ([2, 2, 3, 1], [25.5, 35.0, 45.5, 30.0])
    >>> read_microdata(people, keys=["sex", "age"], weight="w", missing="own").f.tolist()
    [1, 1, 1, 1]
    >>> data.k_violations(3)
    Tally(records=3, combinations=3)
    """
    names = check_keys(keys)
    if missing not in RULES:
        raise InputError(f"missing {missing!r} is unknown; choose from {list(RULES)}")
    homes = (household,) if isinstance(household, str) else tuple(household or ())
    check_roles(names, weight, homes)
    declared = declared_missing(missing_codes, names, homes)
    wanted = [*names, *([] if weight is None else [weight]), *homes]
    loaded = load_columns(source, list(dict.fromkeys(wanted)), form)
    if loaded.frame.empty:
        raise InputError(f"{loaded.source}: a header but no rows")
    read = read_records(
        loaded, names, weight, homes, declared=declared, form=form or UNTOLD, bands=bands or {}
    )
    labels = tuple(level.labels for level in read.levels)
    codes = np.column_stack([level.places for level in read.levels])
    combination, combinations = combine(names, labels, codes, read.weights, missing)
    return Microdata(
        keys=names,
        labels=labels,
        codes=codes,
        combination=combination,
        combinations=combinations,
        weights=read.weights,
        household=None if read.living is None else read.living.numbers,
        household_ids=() if read.living is None else read.living.ids,
        missing=missing,
        weight_name=weight,
        household_name=" + ".join(homes) or None,
        value_labels=loaded.labels,
        source=loaded.source,
        sha256=loaded.sha256,
        file_notes=read.notes,
        key_notes=read.key_notes,
    )
