"""Covariates of a pair of areas: what a gravity model of migration uses besides the counts.

They enter the log rate beside the effects of origin and destination. Covariates describe the small
cells, are known without the counts, and are standardised over all small cells.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.centres import FEWEST_SAME, same_counts, same_file
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes
from bayes_sdc.io.tables import load

EARTH_RADIUS = 6371.0  # km
NEAREST = 1.0  # km; areas whose centroids coincide are taken to be as far apart as this


@checked
def with_covariates(table: FlowTable, covariates: pd.DataFrame) -> FlowTable:
    """Give a table covariates of its small cells, instead of those it may have.

    Parameters
    ----------
    table : FlowTable
        The table.
    covariates : DataFrame
        One numeric column per covariate, one row for each of ``table.cells`` under the same labels;
        the order of the rows does not matter.

    Returns
    -------
    FlowTable
        The table with the covariates standardised to mean 0 and standard deviation 1.

    Raises
    ------
    InputError
        If a cell has no row or more than one, two covariates have one name, a value is missing,
        infinite or not a number, or a covariate is the same for every cell.

    See Also
    --------
    bayes_sdc.gravity_covariates, bayes_sdc.fit_flows

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> distance = pd.DataFrame({"log_distance": [1.0, 2.0, 3.0]}, index=table.cells.index)
    >>> with_covariates(table, distance).covariates["log_distance"].round(3).tolist()
    [-1.225, 0.0, 1.225]
    """
    if covariates.index.has_duplicates:
        label = covariates.index[covariates.index.duplicated()][0]
        raise InputError(f"covariates: cell {label!r} has more than one row; give one for each")
    names = covariates.columns.map(str)
    if names.has_duplicates:
        twice = names[names.duplicated()][0]
        raise InputError(f"covariates: two columns are called {twice!r}; rename one")
    missing = table.cells.index.difference(covariates.index)
    if len(missing):
        raise InputError(
            f"covariates: {len(missing)} of {table.n_small} small cells have no row, first "
            f"{list(missing[:5])}; give one for each of table.cells"
        )
    columns = {}
    for name, column in covariates.loc[table.cells.index].items():
        try:
            values = column.to_numpy(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"covariate {name!r} is not numeric") from None
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise InputError(
                f"covariate {name!r} is missing or infinite in {len(bad)} small cells, first "
                f"{list(table.cells.index[bad[:5]])}; give a finite value or leave it out"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            spread = values.std()
        if not np.isfinite(spread):
            raise InputError(f"covariate {name!r} is too large to standardise; take its logarithm")
        if not spread > 1e-12 * max(np.abs(values).max(), 1e-300):
            raise InputError(f"covariate {name!r} is the same for every small cell; leave it out")
        columns[str(name)] = (values - values.mean()) / spread
    return replace(table, covariates=pd.DataFrame(columns, index=table.cells.index))


@checked
def gravity_covariates(
    table: FlowTable,
    areas: pd.DataFrame | None = None,
    *,
    population: str | None = None,
    longitude: str | None = None,
    latitude: str | None = None,
    state: str | None = None,
    neighbours: pd.DataFrame | None = None,
    earlier: FlowTable | None = None,
) -> pd.DataFrame:
    """Make the usual covariates of a gravity model for the small cells of a table.

    Parameters
    ----------
    table : FlowTable
        The table.
    areas : DataFrame, optional
        One row per area, its code as index (text, as in the table).
    population : str, optional
        Column of ``areas``: ``log_population_origin`` and ``log_population_destination``.
    longitude, latitude : str, optional
        Columns of ``areas``, centroids in degrees: ``log_distance``, of the great circle in km, at
        least 1 km.
    state : str, optional
        Column of ``areas``: ``same_state``, 1 where origin and destination lie in the same one.
    neighbours : DataFrame, optional
        Two columns, pairs of codes of areas that touch, in either or both orders:
        ``contiguous``, 0 or 1.
    earlier : FlowTable, optional
        The table of an earlier year with the same bounds: its class of the count, ``earlier_small``
        and ``earlier_safe``, 0 or 1; both are 0 where the pair had no row or an own-area one.

    Returns
    -------
    DataFrame
        For :func:`with_covariates`; logarithms natural. Columns that are the same for every small
        cell are left out.

    Raises
    ------
    InputError
        If an area of a small cell has no row, or a value is missing or out of range.

    See Also
    --------
    bayes_sdc.with_covariates, bayes_sdc.fit_flows

    References
    ----------
    P. Congdon, "Random-effects models for migration attractivity and retentivity", Journal of the
    Royal Statistical Society A 2010, doi:10.1111/j.1467-985X.2009.00625.x.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> areas = pd.DataFrame({"people": [100, 200, 300, 400]}, index=["a", "b", "x", "y"])
    >>> gravity_covariates(table, areas, population="people").round(2).iloc[0].tolist()
    [4.61, 5.7]
    """
    origin, destination = (table.cells[side].to_numpy(str) for side in ("origin", "destination"))
    columns: dict[str, np.ndarray] = {}
    if population is not None:
        for side, codes in (("origin", origin), ("destination", destination)):
            people = _numbers(areas, codes, population)
            if (people <= 0).any():
                code = str(codes[people <= 0][0])
                raise InputError(
                    f"areas: {population!r} of {code!r} is not above 0; correct it or leave it out"
                )
            columns[f"log_population_{side}"] = np.log(people)
    if (longitude is None) != (latitude is None):
        raise InputError("areas: a distance needs both longitude and latitude")
    if longitude is not None and latitude is not None:
        for name, limit in ((longitude, 360.0), (latitude, 90.0)):
            values = _numbers(areas, np.concatenate([origin, destination]), name)
            if (np.abs(values) > limit).any():
                raise InputError(f"areas: {name!r} is beyond {limit:.0f} degrees; is it projected?")
        here, there = (
            [np.radians(_numbers(areas, codes, name)) for name in (longitude, latitude)]
            for codes in (origin, destination)
        )
        columns["log_distance"] = np.log(np.maximum(_great_circle(*here, *there), NEAREST))
    if state is not None:
        states = [_texts(areas, codes, state) for codes in (origin, destination)]
        columns["same_state"] = np.asarray(states[0] == states[1], dtype=np.float64)
    if neighbours is not None:
        if neighbours.shape[1] < 2 or neighbours.empty:
            raise InputError("neighbours: needs two columns of codes, and a row for each pair")
        pairs = neighbours.iloc[:, :2].astype(str).to_numpy()
        if not set(pairs.ravel()) & (set(origin) | set(destination)):
            raise InputError(
                f"neighbours: no code occurs among the small cells, first {pairs[0].tolist()}; "
                "write codes as the table does"
            )
        touching = {tuple(pair) for pair in pairs} | {tuple(pair[::-1]) for pair in pairs}
        cells = zip(origin, destination, strict=True)
        columns["contiguous"] = np.array([float(pair in touching) for pair in cells])
    if earlier is not None:
        columns |= _classes(table, earlier)
    frame = pd.DataFrame(columns, index=table.cells.index)
    return frame.loc[:, [name for name in columns if frame[name].nunique() > 1]]


def row_distances(
    table: FlowTable, areas: pd.DataFrame, *, longitude: str, latitude: str
) -> list[float] | None:
    """Distances in km between the areas of each row, safe ones too; None if an area has no place.

    Parameters
    ----------
    table : FlowTable
        The table.
    areas : DataFrame
        From :func:`read_areas`.
    longitude, latitude : str
        Columns of it, in degrees.
    """
    ends = [
        read_codes(table.frame[name], name).texts() for name in (table.origin, table.destination)
    ]
    if not set(np.concatenate(ends)) <= set(areas.index):
        return None
    here, there = (
        [np.radians(_numbers(areas, codes.astype(str), name)) for name in (longitude, latitude)]
        for codes in ends
    )
    return [float(km) for km in np.maximum(_great_circle(*here, *there), NEAREST)]


def read_areas(source: Any, *, area: str) -> pd.DataFrame:
    """Read a file of areas for :func:`gravity_covariates`.

    Parameters
    ----------
    source
        Path of a CSV file (also gzipped) or a Parquet file, or a data frame.
    area
        Column of the codes, text as in the table of flows.

    Returns
    -------
    DataFrame
        All columns of the file, by code.

    Raises
    ------
    InputError
        If the file cannot be read, has no such column, or has a code twice.

    Examples
    --------
    >>> import pandas as pd
    >>> read_areas(pd.DataFrame({"code": ["01001"], "people": [55869]}), area="code").index[0]
    '01001'
    """
    loaded = load(source, [area])
    if area not in loaded.frame.columns:
        raise InputError(
            f"{loaded.source}: no column {area!r}; there are {list(loaded.frame.columns)}"
        )
    if list(loaded.frame.columns).count(area) > 1:
        raise InputError(f"{loaded.source}: column {area!r} occurs twice; rename one")
    frame = loaded.frame.set_index(area)
    frame.index = frame.index.astype(str)
    if frame.index.has_duplicates:
        code = frame.index[frame.index.duplicated()][0]
        raise InputError(f"{loaded.source}: area {code!r} has more than one row; keep one")
    return frame


def read_neighbours(source: Any) -> pd.DataFrame:
    """Read pairs of areas that touch: the first two columns of a file, codes as text.

    Raises
    ------
    InputError
        If the file cannot be read or has fewer than two columns.

    Examples
    --------
    >>> import pandas as pd
    >>> read_neighbours(pd.DataFrame({"area": ["01001"], "touches": ["01021"]})).shape
    (1, 2)
    """
    loaded = load(source, [])
    if loaded.frame.shape[1] < 2:
        raise InputError(f"{loaded.source}: needs two columns, the codes of areas that touch")
    return loaded.frame.iloc[:, :2].astype(str)


def _column(areas: pd.DataFrame | None, codes: np.ndarray, name: str) -> np.ndarray:
    """Values of one column of the area file, for every code."""
    if areas is None or name not in areas.columns:
        have = [] if areas is None else list(areas.columns)
        raise InputError(f"areas: no column {name!r}; there are {have}")
    if list(areas.columns).count(name) > 1:
        raise InputError(f"areas: column {name!r} occurs twice; rename one")
    if areas.index.has_duplicates:
        code = areas.index[areas.index.duplicated()][0]
        raise InputError(f"areas: {code!r} has more than one row; keep one")
    missing = sorted({str(code) for code in codes} - set(areas.index.astype(str)))
    if missing:
        raise InputError(
            f"areas: {len(missing)} areas of small cells have no row, first {missing[:5]}; add "
            "them, under the codes that the table uses"
        )
    values: np.ndarray = areas[name].set_axis(areas.index.astype(str)).loc[codes].to_numpy()
    return values


def _texts(areas: pd.DataFrame | None, codes: np.ndarray, name: str) -> np.ndarray:
    values = pd.Series(_column(areas, codes, name))
    texts = values.astype(str).str.strip()
    lacking = (values.isna() | (texts == "")).to_numpy()
    if lacking.any():
        some = sorted({str(code) for code in codes[lacking]})
        raise InputError(f"areas: {name!r} is missing for {some[:5]}; complete it")
    return texts.to_numpy()


def _numbers(areas: pd.DataFrame | None, codes: np.ndarray, name: str) -> np.ndarray:
    values = pd.to_numeric(pd.Series(_column(areas, codes, name)), errors="coerce").to_numpy(float)
    bad = codes[~np.isfinite(values)]
    if len(bad):
        some = sorted({str(code) for code in bad})
        raise InputError(
            f"areas: {name!r} is missing or not a number for {len(some)} areas of small cells, "
            f"first {some[:5]}; complete it, or set these areas aside before reading the table"
        )
    return values


def _great_circle(
    longitude: np.ndarray, latitude: np.ndarray, to_longitude: np.ndarray, to_latitude: np.ndarray
) -> np.ndarray:
    """Distance in km by the haversine formula; angles in radians."""
    half = np.sin((to_latitude - latitude) / 2) ** 2
    half += np.cos(latitude) * np.cos(to_latitude) * np.sin((to_longitude - longitude) / 2) ** 2
    return np.asarray(2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


def _classes(table: FlowTable, earlier: FlowTable) -> dict[str, np.ndarray]:
    """Class of each cell's count in an earlier table."""
    again = min(table.n_small, earlier.n_small) >= FEWEST_SAME and same_counts(table, earlier)
    if again or same_file(table, earlier.path, earlier.sha256):
        raise InputError(
            f"earlier: {earlier.source} is the table that is protected, or holds its counts; give "
            "one of an earlier year"
        )
    if (earlier.low, earlier.high) != (table.low, table.high):
        raise InputError(
            f"earlier: small counts are {earlier.low} to {earlier.high} there and {table.low} to "
            f"{table.high} here; read both with the same bounds"
        )
    frame = earlier.frame
    codes = (frame[earlier.origin].astype(str), frame[earlier.destination].astype(str))
    # sums, because with years as groups a pair may have several rows
    counts = frame[earlier.count].groupby(list(codes)).sum()
    cells = pd.MultiIndex.from_arrays([table.cells["origin"], table.cells["destination"]])
    if not counts.index.isin(cells).any():
        raise InputError(
            f"earlier: {earlier.source} has none of the pairs of the small cells; codes and "
            "columns must be those of the table"
        )
    then = counts.reindex(cells).fillna(0.0).to_numpy(float)
    return {
        "earlier_small": ((then >= table.low) & (then <= table.high)).astype(float),
        "earlier_safe": (then > table.high).astype(float),
    }
