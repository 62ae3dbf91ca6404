"""Execute the notebooks for real and write them with their outputs.

Usage: python notebooks/execute.py [FOLDER]   (default: the folder of the sources)

The files hold no times and no random cell numbers, so that they change with their outputs alone.
"""

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

here = Path(__file__).parent
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
folder.mkdir(parents=True, exist_ok=True)
for source in sorted(here.glob("[0-9]*.py")):
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    resources = {"metadata": {"path": str(here)}}
    NotebookClient(notebook, timeout=600, record_timing=False, resources=resources).execute()
    target = folder / source.with_suffix(".ipynb").name
    nbformat.write(notebook, target)
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB")
