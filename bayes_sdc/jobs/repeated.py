"""Whether the same table was protected before: then an intruder may compare two releases of it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.io.text import read_bytes
from bayes_sdc.runs import FinishedRun, finished_runs_beside

NAME, KEY = "protected more than once", "released_before"


def check_repeated(
    out: Path,
    sha256: str,
    already_released: Sequence[Any],
    *,
    content_sha256: str | None = None,
    released_epsilon: Sequence[float] = (),
) -> list[Check]:
    """Judge whether every finished run of the same input beside this one counts in the risk.

    Parameters
    ----------
    out : Path
        Folder of the present run; those beside it are looked through.
    sha256 : str
        Of the input.
    already_released : sequence of path
        Earlier releases that count in the risk.
    content_sha256 : str, optional
        Of what the input holds: another file can hold the same table.
    released_epsilon : sequence of float
        What is said to have been promised for the first of ``already_released``.

    Returns
    -------
    list of Check
        None where nothing was found and nothing was named.

    Raises
    ------
    InputError
        If less is said than a run beside this one promised, or it promised nothing.
    """
    counted = {
        hashlib.sha256(read_bytes(Path(release))).hexdigest(): place
        for place, release in enumerate(already_released)
        if not isinstance(release, pd.DataFrame)
    }
    beside = finished_runs_beside(out, sha256, content_sha256)
    for run in beside:
        place = counted.get(run.released, len(released_epsilon))
        if place < len(released_epsilon):
            _check_said(released_epsilon[place], run, str(already_released[place]))
    missing = [run.folder for run in beside if run.released not in counted]
    if missing:
        named = ", ".join(str(folder.name) for folder in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return [
            Check(
                NAME,
                "look",
                f"the same table was protected by finished runs beside this one: {named}{more}; "
                "whoever has two releases knows more than the risk here says. Release one only, or "
                "name what is out with --already-released",
                key=KEY,
            )
        ]
    if len(already_released):
        number = len(already_released)
        files = "1 earlier release counts" if number == 1 else f"{number} earlier releases count"
        return [Check(NAME, "pass", f"{files} in the risk", key=KEY)]
    return []


def _check_said(said: float, run: FinishedRun, release: str) -> None:
    """Refuse an epsilon that is not that of the run which made a release."""
    if run.epsilon is None:
        raise InputError(
            f"released_epsilon: {release} was made by the run in {run.folder.name}, which promised "
            f"nothing, and {said:g} is said to be its epsilon; leave the number out "
            "(--released-epsilon): then nothing is promised of both together"
        )
    if said < run.epsilon * (1.0 - 1e-12):
        raise InputError(
            f"released_epsilon: {release} was made by the run in {run.folder.name} with epsilon "
            f"{run.epsilon:g}, all its data sets together; {said:g} is less (--released-epsilon)"
        )
