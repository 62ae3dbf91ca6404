"""The fast reader gives what the slow one gives, or leaves the file to it."""

from unittest import mock

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.io import tables
from bayes_sdc.io.csv_text import CsvText
from bayes_sdc.io.plain_text import read_plain

CELLS = st.text(alphabet='ab0 .;,"\n\r\t\u00e9', max_size=5)


def _read(content: bytes, folder) -> pd.DataFrame | str:
    path = folder / "t.csv"
    path.write_bytes(content)
    try:
        loaded = tables.load(path, ("x", "y"))
    except InputError as error:
        return str(error)
    assert len(loaded.lines) == len(loaded.frame)
    return loaded.frame.assign(**{"line of the file": loaded.lines, "notes": str(loaded.notes)})


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=4),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from(",;\t"),
    st.sampled_from([str, '"{}"'.format]),
    st.booleans(),
)
@example([['"x', "b"], ["c", 'd"']], "\n", ",", str, True)
@example([['0","', ""]], "\n", ",", str, False)
@example([['a""b', "b"]], "\n", ",", '"{}"'.format, False)
def test_both_readers_agree_to_the_cell_and_line(
    tmp_path_factory, rows, end, separator, quote, last
):
    folder = tmp_path_factory.mktemp("t")
    lines = [separator.join("xy"), *(separator.join(map(quote, row)) for row in rows)]
    content = (end.join(lines) + (end if last else "")).encode()
    fast = _read(content, folder)
    with mock.patch.object(tables, "read_plain", return_value=None):
        slow = _read(content, folder)
    if isinstance(slow, str):
        assert fast == slow
    else:
        pd.testing.assert_frame_equal(fast, slow)


@pytest.mark.parametrize("body", ["1,x\n2,y\n", "1,x\r\n2,y", '"1","x,"\n"2",""\n'])
def test_ordinary_files_take_the_fast_way(body):
    """Else the agreement says nothing."""
    found = read_plain(CsvText(["a", "b"], body, 2, ",", "utf-8", False))
    assert found is not None
    assert found[0].tolist() == ["1", "2"]


def test_very_many_columns_are_read_in_seconds(tmp_path):
    """An array for each of 200,000 columns took five minutes."""
    names = [f"c{i}" for i in range(30_000)]
    text = ",".join(["x", "y", *names]) + "\n" + ",".join(["1", "2", *names]) + "\n"
    (tmp_path / "t.csv").write_text(text)
    frame = tables.load(tmp_path / "t.csv", ("x", "y")).frame
    assert frame.shape == (1, 30_002)
    assert frame.iloc[0, -1] == names[-1]
    assert frame.iloc[0, 0] == "1"
