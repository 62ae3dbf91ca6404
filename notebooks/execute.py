"""Execute the notebooks for real, two at a time, and write them with their outputs.

Usage: python notebooks/execute.py [FOLDER]   (default: the folder of the sources)

The files hold no times, no random cell numbers and no progress bars, which are nothing without a
running kernel, so that they change with their outputs alone.
"""

import asyncio
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

AT_A_TIME = 2
FIRST = ("02", "01", "10")  # take longest, so that none of them runs at the end alone
TIMEOUT = 1200  # seconds a cell; a busy machine is no error
WIDGET = "application/vnd.jupyter.widget-view+json"

here = Path(__file__).parent


def lasts(output: nbformat.NotebookNode) -> bool:
    """Whether an output is more than a progress bar, or the empty text it leaves behind."""
    data = output.get("data")
    return data is None or (WIDGET not in data and data.get("text/plain") != "")


async def execute(source: Path, folder: Path, turn: asyncio.Semaphore) -> None:
    """Run one notebook and write it."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    resources = {"metadata": {"path": str(here)}}
    client = NotebookClient(notebook, timeout=TIMEOUT, record_timing=False, resources=resources)
    async with turn:
        begun = time.monotonic()
        await client.async_execute()
        seconds = time.monotonic() - begun
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if lasts(output)]
    target = folder / source.with_suffix(".ipynb").name
    nbformat.write(notebook, target)
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB, {seconds:.0f} s", flush=True)


async def main(folder: Path) -> None:
    """Run all notebooks."""
    folder.mkdir(parents=True, exist_ok=True)
    turn = asyncio.Semaphore(AT_A_TIME)
    async with asyncio.TaskGroup() as tasks:
        sources = sorted(here.glob("[0-9]*.py"))
        sources.sort(key=lambda path: path.name[:2] not in FIRST)
        for source in sources:
            tasks.create_task(execute(source, folder, turn))


asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else here))
