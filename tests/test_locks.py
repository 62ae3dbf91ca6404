"""Two runs at once in one folder would write over each other's draws."""

import subprocess
import sys

import pytest

from bayes_sdc import runs
from bayes_sdc.errors import InputError
from bayes_sdc.locks import lock, unlock
from bayes_sdc.runs import check_out, open_run

HOLD = """
import sys
from pathlib import Path
from bayes_sdc.locks import lock
lock(Path(sys.argv[1]))
print("held", flush=True)
input()
"""


def test_a_folder_that_another_process_works_in_is_refused(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        for opening in (check_out, open_run):
            for resume in (False, True):
                with pytest.raises(InputError, match="another run is at work there"):
                    opening(tmp_path, resume=resume)
    finally:
        holder.kill()
        holder.communicate()
    # the lock ends with the process, however that ends, and leaves nothing behind
    assert list(tmp_path.iterdir()) == []
    open_run(tmp_path)
    unlock(tmp_path)


def test_a_run_that_ends_while_another_one_begins_is_not_replaced(tmp_path, monkeypatch):
    """Neither has locked a folder that is not there yet."""
    out, look = tmp_path / "out", runs.check_out

    def ends_now(folder, **options):
        run = look(folder, **options)
        if not folder.exists():
            run.confidential.mkdir(parents=True)
            record = {"checks": [], "written": ["confidential/run.json"]}
            runs.write_json(run.confidential / "run.json", record)
        return run

    monkeypatch.setattr(runs, "check_out", ends_now)
    with pytest.raises(InputError, match="holds a finished run"):
        open_run(out)
    unlock(out)


def test_a_process_may_lock_twice_and_a_folder_that_is_not_there_not_at_all(tmp_path):
    lock(tmp_path)
    lock(tmp_path)
    lock(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    unlock(tmp_path)
    unlock(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
