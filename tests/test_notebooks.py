"""Notebooks as they are read: executed from their sources, small, and without errors."""

from pathlib import Path

import jupytext
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=[source.stem for source in SOURCES])
def test_notebook_is_what_its_source_gives(source: Path) -> None:
    """A reader of the outputs must not see those of another text, nor load megabytes."""
    file = source.with_suffix(".ipynb")
    assert file.stat().st_size < 2**20
    executed = nbformat.read(file, as_version=4)
    assert [(cell.cell_type, cell.source) for cell in executed.cells] == [
        (cell.cell_type, cell.source) for cell in jupytext.read(source).cells
    ], "run notebooks/execute.py"
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"], "a warning"
