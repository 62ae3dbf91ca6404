"""Bytes become text, or it is said why they do not."""

import gzip
import time

import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.io import text
from bayes_sdc.io.text import decode, read_bytes, unpack
from bayes_sdc.microdata.file.read import read_microdata


def read_tables(path):
    return read_flows(path, origin="from", destination="to", count="n")


def read_persons(path):
    return read_microdata(path, keys=["from"])


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("marks", [0, 1, 2, 3])
def test_no_mark_is_left_in_the_first_name(encoding, marks):
    """Two joined files begin with two marks, and the first column would be missing."""
    assert decode(("\ufeff" * marks + "from,ä").encode(encoding), "x.csv")[0] == "from,ä"


@pytest.mark.parametrize("read", [read_tables, read_persons])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{}", "x.csv.gz"),
        ("from,to,n\nA,B,3\n{}", "x.csv.gz"),
        ('from,to,n\nA,B,3\n"{}",B,3\n', "x.csv.gz"),
        ("unit,from,to\\time\t2020\n{}", "x.tsv.gz"),
    ],
)
@pytest.mark.parametrize("sign", ["0", ",", '"",', "\t1"])
def test_a_line_that_fills_the_memory_is_refused_at_once(tmp_path, text, name, sign, read):
    """300 MB in a file of 0.3 MB would be looked through for half a minute."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.format(sign * (10**8 // len(sign))).encode(), 1))
    start = time.process_time()
    with pytest.raises(InputError, match="in a line of more than 8 MiB, the limit for a line"):
        read(path)
    assert time.process_time() - start < 3


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
