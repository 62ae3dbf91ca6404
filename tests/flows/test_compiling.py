"""Compiling ahead, in processes of their own, and what is said of it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from bayes_sdc.flows import compiling
from bayes_sdc.flows.fit.compiled import sampler_is_compiled
from bayes_sdc.flows.fit.forecast import forecast
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.job import protect
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.models.migration import resolve_prior


class Function:
    """Stands for a compiled function whose cache holds this."""

    def __init__(self, index: object) -> None:
        self._index = index
        self._cache = self
        self._cache_file = self

    def _load_index(self) -> object:
        return self._index


@pytest.mark.parametrize(("index", "before"), [({}, False), ({"signature": "file"}, True)])
def test_an_empty_index_of_the_cache_means_that_nothing_is_compiled(monkeypatch, index, before):
    monkeypatch.setattr("bayes_sdc.flows.gibbs.national.move_nation", Function({"a": "b"}))
    monkeypatch.setattr("bayes_sdc.flows.gibbs.newton.sweep", Function(index))
    assert sampler_is_compiled() is before
    monkeypatch.setattr(
        "bayes_sdc.flows.intruder.estimators.integrated.add_draws", Function({"a": "b"})
    )
    monkeypatch.setattr(
        "bayes_sdc.flows.intruder.probabilities.pareto.khat_of_weights", Function(index)
    )
    assert compiling.risk_is_compiled() is before


def test_another_numba_that_does_not_tell_is_left_alone(monkeypatch):
    monkeypatch.setattr("bayes_sdc.flows.gibbs.newton.sweep", object())
    assert sampler_is_compiled() is True


def process(code: str, seconds: float = 30.0) -> compiling.Compiling:
    started = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    return compiling.Compiling(started, monotonic(), seconds)


@pytest.mark.parametrize(("code", "said"), [("pass", False), ("raise SystemExit(3)", True)])
def test_a_process_that_fails_is_said_and_does_not_end_the_job(monkeypatch, capsys, code, said):
    started = process(code)
    monkeypatch.setattr(compiling, "start_compiling", lambda: (started,))
    compiling.finish_compiling()
    assert started.process.returncode is not None
    assert ("failed; the run compiles on the way" in capsys.readouterr().err) is said


def test_nothing_is_said_where_nothing_is_to_be_compiled(monkeypatch, capsys):
    monkeypatch.setattr(compiling, "start_compiling", lambda: ())
    compiling.finish_compiling()
    assert capsys.readouterr().err == ""
    assert compiling.seconds_left() == 0.0


def test_what_is_left_is_the_longer_process_or_their_sum_on_one_core(monkeypatch):
    """A forecast that forgets that both share a core is half of the truth."""
    both = [process("input()", 40.0), process("input()", 70.0)]
    monkeypatch.setattr(compiling, "start_compiling", lambda: tuple(both))
    try:
        for cores, seconds in ((2, 70.0), (1, 110.0)):
            monkeypatch.setattr(compiling, "threads", lambda asked, cores=cores: cores)
            assert compiling.seconds_left() == pytest.approx(seconds, abs=2.0)
        late = both[0]._replace(begun=monotonic() - 1000.0)
        monkeypatch.setattr(compiling, "start_compiling", lambda: (late,))
        assert compiling.seconds_left() == 1.0  # it is not done, whatever the clock says
    finally:
        for one in both:
            one.process.kill()
            one.process.wait()
    assert compiling.seconds_left() == 0.0


def test_the_job_counts_compiling_before_it_begins(monkeypatch, capsys):
    """The forecast said 35 s where 250 were taken."""
    table = compiling.invented_table()
    waiting = process("import time; time.sleep(2)")
    monkeypatch.setattr(compiling, "start_compiling", lambda: (waiting,))
    monkeypatch.setattr(protect, "start_compiling", lambda: None)
    options = {"draws": 20, "tune": 10, "chains": 2, "releases": 1, "cores": 1, "seed": 1}
    found = protect.protect_flows(table, **options)
    said = capsys.readouterr().err
    whole, steps = re.search(r"whole job takes about (\d+) s .*?: (.*)", said).groups()
    assert steps.startswith("compiling ")
    told = sum(float(seconds) for seconds in re.findall(r"(\d+) s", steps))
    assert float(whole) == pytest.approx(told, abs=4.0)
    assert told >= 27.0
    assert "once on this machine: done" in said
    assert found.seconds["compiling"] > 0.0


def test_a_fit_tells_of_compiling_only_where_it_compiles(monkeypatch):
    cells = small_cells(compiling.invented_table(), covariates=())
    asked = {"draws": 100, "tune": 50, "chains": 4, "seed": 1, "cores": 2}
    asked |= {"family": "negative-binomial", "prior": resolve_prior("default")}
    monkeypatch.setattr("bayes_sdc.flows.fit.compiled.sampler_is_compiled", lambda: False)
    assert "of compiling, once on this machine" in str(forecast(cells, Sampling(**asked)))
    monkeypatch.setattr("bayes_sdc.flows.fit.compiled.sampler_is_compiled", lambda: True)
    assert "compiling" not in str(forecast(cells, Sampling(**asked)))


COUNT = """
import sys
from numba.core import event
from bayes_sdc.flows import compiling
class Listener(event.Listener):
    number = 0
    def on_start(self, found):
        self.number += 1
    def on_end(self, found):
        pass
listener = Listener()
event.register("numba:compile", listener)
getattr(compiling, sys.argv[1])()
print(listener.number)
"""


@pytest.mark.slow  # it compiles everything
@pytest.mark.parametrize(("task", "most"), [("compile_sampler", 100), ("compile_risk", 100)])
def test_a_new_machine_compiles_few_functions(task: str, most: int, tmp_path: Path) -> None:
    """Some 400 small functions of numba's own took most of the first run; each comes unseen."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, task],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 20 < int(done.stdout) <= most, "more is compiled: see the rules in bayes_sdc.flows.gibbs"
