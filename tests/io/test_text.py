"""Bytes become text, or it is said why they do not."""

import gzip

import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.io import text
from bayes_sdc.io.text import decode, read_bytes, unpack


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a,b", "utf-8"),
        ("ä".encode(), "utf-8"),
        ("\ufeffä".encode(), "utf-8-sig"),
        ("ä".encode("utf-16"), "utf-16"),
        ("ä".encode("latin-1"), "latin-1"),
        ("€".encode("cp1252"), "cp1252"),
        (b"\x81", "latin-1"),
    ],
)
def test_the_encoding_is_found(data, found):
    assert decode(data, "x.csv")[1] == found


@pytest.mark.parametrize("data", ["\ufeffabc".encode() + b"\xe4,1", "abc".encode("utf-16") + b"x"])
def test_a_mark_that_is_not_kept_is_refused(data):
    """Read as latin-1 the first name would begin with the mark, and a column be missing."""
    with pytest.raises(InputError, match=r"x\.csv: says by its byte-order mark .* but byte [0-9]"):
        decode(data, "x.csv")


def test_a_compressed_file_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(text, "MOST_UNPACKED", 2**20)
    assert unpack(gzip.compress(b"0" * 2**20), "x.csv.gz")[1]
    with pytest.raises(InputError, match="holds more than 1 MiB when it is unpacked"):
        unpack(gzip.compress(b"0" * (2**20 + 1)), "x.csv.gz")


def test_a_path_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_bytes(tmp_path / "a\0b.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_bytes(tmp_path / ("x" * 300))
