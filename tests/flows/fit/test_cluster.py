"""Chains on a cluster: the draws of one machine, also when a worker dies."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import xarray as xr

from bayes_sdc import FlowTable, InputError, fit_flows, progress, read_flows
from bayes_sdc.flows.fit import cluster
from bayes_sdc.flows.table.simulate import simulate_flows

distributed = pytest.importorskip("distributed")
# a worker that is killed leaves its sockets open
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

CALL = {"draws": 60, "tune": 40, "chains": 3, "seed": 7}


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read_flows(
        simulate_flows(areas=14, states=2, seed=3),
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )


@pytest.fixture(scope="module")
def workers() -> Iterator["distributed.LocalCluster"]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as here:
        yield here


def same(one: xr.DataTree, two: xr.DataTree) -> bool:
    return all(
        one[group].to_dataset().identical(two[group].to_dataset())
        for group in ("posterior", "sample_stats", "constant_data")
    )


@pytest.mark.parametrize("prior", ["pooled", "weak"])
def test_draws_are_those_of_one_machine(
    table: FlowTable,
    workers: "distributed.LocalCluster",
    tmp_path: Path,
    prior: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    address = workers.scheduler_address
    there = fit_flows(table, **CALL, prior=prior, scheduler=address, resume=tmp_path)
    # three chains of one batch are counted, not the batch alone
    said = capsys.readouterr().err
    assert all(f"{share}%" in said for share in (33, 67, 100))
    assert same(there, fit_flows(table, **CALL, prior=prior))
    # finished parts are not sent again: nobody answers here
    assert same(there, fit_flows(table, **CALL, prior=prior, resume=tmp_path))


@pytest.mark.slow
def test_loss_of_a_worker_changes_nothing(
    table: FlowTable, workers: "distributed.LocalCluster"
) -> None:
    call = {**CALL, "draws": 3000, "tune": 500}
    pids = [worker.process.pid for worker in workers.workers.values()]
    killed = []

    def kill_one() -> None:
        for _ in range(600):
            time.sleep(0.05)
            busy = workers.scheduler.workers.values()
            chosen = [w for w in busy if w.processing]
            if chosen:
                time.sleep(0.2)
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])
                return

    killer = threading.Thread(target=kill_one)
    killer.start()
    there = fit_flows(table, **call, scheduler=workers.scheduler_address)
    killer.join()
    assert killed
    assert same(there, fit_flows(table, **call))


@pytest.mark.slow
def test_loss_of_the_only_worker_at_the_start_changes_nothing(table: FlowTable) -> None:
    # it alone would have had the counts, had they been sent ahead
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as here:

        def kill() -> None:
            while not any(w.processing for w in here.scheduler.workers.values()):
                time.sleep(0.01)
            os.kill(here.workers[0].process.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        there = fit_flows(table, **CALL, scheduler=here.scheduler_address)
        killer.join()
    assert same(there, fit_flows(table, **CALL))


def test_nobody_there_is_one_clear_error(table: FlowTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    with pytest.raises(InputError, match=r"tcp://127.0.0.1:9: cannot be reached"):
        fit_flows(table, **CALL, scheduler="tcp://127.0.0.1:9")


def test_nuts_is_refused(table: FlowTable) -> None:
    with pytest.raises(InputError, match="runs the Gibbs samplers"):
        fit_flows(table, **CALL, sampler="nuts", scheduler="tcp://127.0.0.1:9")
