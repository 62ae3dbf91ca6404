"""What is done on request only: methods that take minutes, models of nearly unique keys."""

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.suspects import NEARLY, nearly_unique
from bayes_sdc.microdata.lancaster.forecast import LancasterForecast, lancaster_forecast
from bayes_sdc.microdata.special_uniques.forecast import SudaForecast
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
        By ``"lancaster"``, ``"cross-validation"`` and ``"suda"``.
    """
    expected: dict[str, tuple[str, LancasterForecast | SudaForecast]] = {
        "lancaster": ("Lancaster", lancaster_forecast(microdata, shrinkage=(0.0, 1.0))),
        "cross-validation": (
            "Lancaster, cross-validated",
            lancaster_forecast(microdata, shrinkage="cv"),
        ),
        "suda": ("DIS-SUDA", suda_forecast(microdata, max_size=max_size)),
    }
    return {
        name: f"{title} is left out, because it takes minutes ({what}); slow=True runs it"
        for name, (title, what) in expected.items()
        if what.seconds > SLOW
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
