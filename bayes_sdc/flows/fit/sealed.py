"""Files of an interrupted run, each with a checksum: a damaged one is refused, not read.

The checksum follows the content. It also covers the call that the file belongs to, so draws cannot
be mistaken for those of another seed when the record of the call is damaged.
"""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.runs import write_bytes

LENGTH = hashlib.sha256().digest_size

Arrays = Mapping[str, np.ndarray]


def write_sealed(path: Path, content: bytes, *, belongs: bytes = b"") -> None:
    """Write content and checksum, completely or not at all, readable by the owner alone.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        The content.
    belongs : bytes
        What the content belongs to; it is needed again to read the file.
    """
    digest = hashlib.sha256(belongs + content).digest()
    write_bytes(path, content + digest, private=True)


def read_sealed(path: Path, *, belongs: bytes = b"") -> bytes:
    """Return what :func:`write_sealed` wrote.

    Raises
    ------
    InputError
        If the file cannot be read, or a byte of it has changed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _damaged(path, str(error.strerror)) from None
    content, digest = data[:-LENGTH], data[-LENGTH:]
    if hashlib.sha256(belongs + content).digest() != digest:
        raise _damaged(path, "its checksum is another")
    return content


def write_arrays(path: Path, arrays: Arrays, *, belongs: bytes = b"") -> None:
    """Write arrays by name, as :func:`write_sealed`."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_sealed(path, content.getvalue(), belongs=belongs)


def read_arrays(path: Path, *, belongs: bytes = b"") -> dict[str, np.ndarray]:
    """Read what :func:`write_arrays` wrote."""
    with np.load(io.BytesIO(read_sealed(path, belongs=belongs)), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write a table, as :func:`write_sealed`."""
    content = io.BytesIO()
    frame.to_parquet(content)
    write_sealed(path, content.getvalue())


def read_frame(path: Path) -> pd.DataFrame:
    """Read what :func:`write_frame` wrote."""
    return pd.read_parquet(io.BytesIO(read_sealed(path)))


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path}: is not what was saved ({why}); delete its folder to start afresh")
