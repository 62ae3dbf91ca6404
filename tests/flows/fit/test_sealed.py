"""Every byte of what an interrupted run keeps counts."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit import sealed
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part, kept_call

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2])}


def test_what_is_written_is_read(tmp_path):
    sealed.write_arrays(tmp_path / "x.npz", ARRAYS, belongs=b"call")
    found = sealed.read_arrays(tmp_path / "x.npz", belongs=b"call")
    assert found.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(found[name], values)
    frame = pd.DataFrame({"x": ["a", None], "y": [1.5, 2.5]}, index=pd.Index([3, 4], name="z"))
    sealed.write_frame(tmp_path / "f.parquet", frame)
    pd.testing.assert_frame_equal(sealed.read_frame(tmp_path / "f.parquet"), frame)


def test_any_flipped_byte_cut_or_other_call_is_refused(tmp_path):
    """6,000 flips gave 31 times NotImplementedError and 14 times a KeyError."""
    path = tmp_path / "x.npz"
    sealed.write_arrays(path, ARRAYS)
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :])
        with pytest.raises(InputError, match="not what was saved"):
            sealed.read_arrays(path)
    for length in (0, 5, len(good) - 1):
        path.write_bytes(good[:length])
        with pytest.raises(InputError, match="its checksum is another"):
            sealed.read_arrays(path)
    path.write_bytes(good)
    with pytest.raises(InputError, match="its checksum is another"):
        sealed.read_arrays(path, belongs=b"another call")


@pytest.mark.parametrize("text", ['{"seed": 1e400}', "[" * 100_000, '{"seed": ' + "9" * 5000 + "}"])
def test_a_record_of_the_call_that_cannot_be_is_refused(text, tmp_path):
    (tmp_path / "call.json").write_text(text)
    with pytest.raises(InputError, match="not what was saved"):
        kept_call(tmp_path)


def test_draws_are_not_taken_for_those_of_a_damaged_call(tmp_path):
    """A digit of the seed that flips leaves valid JSON, and the run would go on by another seed."""
    part = Part(np.array([0]), {"alpha": np.zeros((1, 2, 1))}, {})
    Checkpoint(tmp_path, {"seed": 12}).save(part)
    (tmp_path / "call.json").write_text('{"seed": 13}')
    store = Checkpoint(tmp_path, kept_call(tmp_path))
    with pytest.raises(InputError, match="its checksum is another"):
        list(store.finished())
