"""Compiling ahead, in a process of its own."""

import subprocess
import sys

import pytest

from bayes_sdc.jobs import compiling


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
    assert compiling.sampler_is_compiled() is before
    monkeypatch.setattr("bayes_sdc.flows.intruder.integrated.add_draws", Function({"a": "b"}))
    monkeypatch.setattr("bayes_sdc.flows.intruder.pareto.khat_of_weights", Function(index))
    assert compiling.risk_is_compiled() is before


def test_another_numba_that_does_not_tell_is_left_alone(monkeypatch):
    monkeypatch.setattr("bayes_sdc.flows.gibbs.newton.sweep", object())
    assert compiling.sampler_is_compiled() is True


def process(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(("code", "said"), [("pass", False), ("raise SystemExit(3)", True)])
def test_a_process_that_fails_is_said_and_does_not_end_the_job(monkeypatch, capsys, code, said):
    started = process(code)
    monkeypatch.setattr(compiling, "start_compiling", lambda: (started,))
    compiling.finish_compiling()
    assert started.returncode is not None
    assert ("failed: it is done on the way" in capsys.readouterr().err) is said


def test_nothing_is_said_where_nothing_is_to_be_compiled(monkeypatch, capsys):
    monkeypatch.setattr(compiling, "start_compiling", lambda: ())
    compiling.finish_compiling()
    assert capsys.readouterr().err == ""
