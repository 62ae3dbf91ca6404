"""What is done on request only: methods that take minutes, models of nearly unique keys."""

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.suspects import NEARLY, nearly_unique
from bayes_sdc.microdata.lancaster.forecast import lancaster_forecast
from bayes_sdc.microdata.loglinear.forecast import loglinear_seconds
from bayes_sdc.microdata.special_uniques.suda import suda_forecast

SLOW = 120.0  # seconds


def left_out(microdata: Microdata, max_size: int) -> dict[str, str]:
    """Return methods whose forecast is minutes, each with a note on it.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    max_size : int
        Largest minimal sample unique of SUDA.

    Returns
    -------
    dict
        By ``"lancaster"``, ``"cross-validation"``, ``"suda"`` and ``"loglinear"``.
    """
    additive = lancaster_forecast(microdata, shrinkage=(0.0, 1.0))
    validated = lancaster_forecast(microdata, shrinkage="cv")
    special = suda_forecast(microdata, max_size=max_size)
    loglinear = loglinear_seconds(microdata)
    expected = {
        "lancaster": ("Lancaster", additive.seconds, str(additive)),
        "cross-validation": ("Lancaster, cross-validated", validated.seconds, str(validated)),
        "suda": ("DIS-SUDA", special.seconds, str(special)),
        "loglinear": ("log-linear", loglinear, f"up to {loglinear:,.0f} s"),
    }
    return {
        name: f"{title} is left out, because it takes minutes ({what}); to run it: --force "
        "(force=True; slow=True of compare_risks)"
        for name, (title, seconds, what) in expected.items()
        if seconds > SLOW
    }


def refuse_nearly_unique(microdata: Microdata) -> None:
    """Refuse a key variable in which nearly every record has a value of its own.

    Raises
    ------
    InputError
        Naming the key and the remedy.
    """
    for place, key in enumerate(microdata.keys):
        labels, codes = microdata.labels[place], microdata.codes[:, place]
        if nearly_unique(labels, codes, NEARLY):
            present = int((codes >= 0).sum())
            raise InputError(
                f"{microdata.source}: key {key!r} has {len(labels):,} distinct values in "
                f"{present:,} records, so that it alone makes nearly everybody unique, and the "
                f"models would say nothing else. Remedy: classes, as --bands {key}=q10 or "
                f"--bands {key}=5 (bands of read_microdata); leave it out, if it is an id; or "
                "--force (force=True)"
            )
