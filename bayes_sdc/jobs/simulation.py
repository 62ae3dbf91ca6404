"""An invented country in one or two files: to try things on, of any size."""

from contextlib import suppress
from pathlib import Path

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.simulate import simulate_areas, simulate_flows
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.runs import write_bytes


def run_simulation(
    file: Path,
    *,
    areas: int,
    states: int,
    small: int | None,
    truth: bool,
    seed: int,
    areas_file: Path | None,
) -> list[str]:
    """Write simulated flows, and their areas where asked for: both files, or none.

    Parameters
    ----------
    file : Path
        File of flows to write: CSV, also compressed, or Parquet.
    areas, states, small, truth, seed
        As for :func:`bayes_sdc.simulate_flows`.
    areas_file : Path or None
        File of areas to write too.

    Returns
    -------
    list of str
        Lines for the console.

    Raises
    ------
    InputError
        If a file already exists, cannot be written or has another ending, or a size is out of
        range.
    """
    files = [path for path in (file, areas_file) if path is not None]
    for path in files:
        if path.exists():
            raise InputError(f"{path}: already exists; choose another name")
        if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
            raise InputError(f"{path}: must end in .csv, .csv.gz or .parquet")
    if len({path.resolve() for path in files}) < len(files):
        raise InputError(f"{file}: is named for the flows and for the areas; choose two names")
    frame = simulate_flows(areas=areas, states=states, small=small, truth=truth, seed=seed)
    frames = [frame]
    if areas_file is not None:
        frames.append(simulate_areas(areas=areas, states=states, seed=seed))
    for path, content in zip(files, frames, strict=True):
        dialect = Dialect(
            format="parquet" if path.suffix == ".parquet" else "csv", gzipped=path.suffix == ".gz"
        )
        try:
            write_bytes(path, encode(content, dialect))
        except BaseException:
            with suppress(OSError):
                files[0].unlink(missing_ok=True)  # both files, or none
            raise
    moved = frame[frame["origin"] != frame["destination"]]
    few = int(moved["count"].between(1, 9).sum())
    groups = moved[["origin_state", "destination_state"]].drop_duplicates()
    lines = [
        f"{file}: {len(frame):,} rows, {few:,} counts from 1 to 9, {len(groups):,} pairs of states"
    ]
    if areas_file is not None:
        lines.append(f"{areas_file}: {len(frames[1]):,} areas")
    return lines
