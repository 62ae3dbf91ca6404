"""One run at a time in a folder: two would write over each other's draws.

The operating system locks the folder itself. It leaves no file behind and ends with the process,
however that ends.
"""

import os
from contextlib import suppress
from pathlib import Path

from bayes_sdc.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_held: dict[Path, int] = {}  # folders that this process has locked, and their descriptors


def lock(folder: Path) -> None:
    """Lock a folder for this process, if it is there; a second call does nothing.

    Raises
    ------
    InputError
        If another process has locked it.
    """
    if fcntl is None or not folder.is_dir() or folder.resolve() in _held:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(
            f"{folder}: another run is at work there; wait for its end, or choose another folder "
            "with --out"
        ) from None
    except OSError:  # a network disk without locks
        os.close(descriptor)
        return
    _held[folder.resolve()] = descriptor


def unlock(folder: Path) -> None:
    """Release the lock of a folder."""
    descriptor = _held.pop(folder.resolve(), None)
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)
