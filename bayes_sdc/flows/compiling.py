"""Compiling on a new machine: once, in two processes, while files are read and measured.

numba keeps compiled code beside the package or in the user's cache. Missing code is compiled by
small jobs on an invented table: one process compiles the sampler, the other the measurement of the
intruder's risk. Meanwhile the run itself reads and measures persons, and loads what is ready.
"""

import atexit
import functools
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from bayes_sdc.compiled import in_cache
from bayes_sdc.cores import threads
from bayes_sdc.flows.fit import compiled
from bayes_sdc.flows.fit.forecast import duration
from bayes_sdc.progress import Progress, say

if TYPE_CHECKING:
    from bayes_sdc.flows.table.read import FlowTable

RISK_SECONDS = 35.0  # of one core, to compile what measures the intruder's risk
LOOK_EVERY = 0.5  # seconds


class Compiling(NamedTuple):
    """A process that compiles, when it began, and the seconds that it takes."""

    process: "subprocess.Popen[bytes]"
    begun: float
    seconds: float


def risk_is_compiled() -> bool:
    """Tell whether numba's cache has what measures the intruder's risk."""
    from bayes_sdc.flows.intruder.estimators.integrated import add_draws
    from bayes_sdc.flows.intruder.probabilities.pareto import khat_of_weights

    return in_cache(add_draws, khat_of_weights)


def invented_table() -> "FlowTable":
    """Return a table on which a small job compiles all that a large one needs."""
    from bayes_sdc.flows.table.read import read_flows
    from bayes_sdc.flows.table.simulate import simulate_flows

    return read_flows(
        simulate_flows(areas=12, states=2, seed=3),
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )


def compile_sampler() -> None:
    """Fit an invented table, to compile the sampler."""
    from bayes_sdc.flows.fitting import fit_flows

    fit_flows(invented_table(), draws=4, tune=2, chains=2, seed=1, cores=1)


def compile_risk() -> None:
    """Measure the risk of an invented table, to compile the estimator; fit it in pure Python."""
    from bayes_sdc.flows.fitting import fit_flows
    from bayes_sdc.flows.intruder.measure import intruder_risk
    from bayes_sdc.flows.release.synthetic.synthesis import synthesize

    table = invented_table()
    posterior = fit_flows(table, sampler="reference", draws=12, tune=6, chains=2, seed=1, cores=1)
    intruder_risk(table, posterior, synthesize(table, posterior, seed=1), cores=1)


@functools.cache
def start_compiling() -> tuple[Compiling, ...]:
    """Compile what this machine has not compiled yet, in separate processes."""
    wanted = []
    if not compiled.sampler_is_compiled():
        wanted.append((compile_sampler, compiled.SECONDS))
    if not risk_is_compiled():
        wanted.append((compile_risk, RISK_SECONDS))
    return tuple(Compiling(_started(task.__name__), time.monotonic(), s) for task, s in wanted)


def _started(task: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(  # noqa: S603  # ourselves
        [sys.executable, "-c", f"from {__name__} import {task} as run; run()"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.kill)  # a refused run leaves no process behind
    return process


def seconds_left() -> float:
    """Seconds until everything is compiled, roughly; 0 where nothing is left to do."""
    left = [
        max(one.seconds - (time.monotonic() - one.begun), 1.0)
        for one in start_compiling()
        if one.process.poll() is None
    ]
    return max(left, default=0.0) if threads(None) > 1 else sum(left)


def finish_compiling() -> None:
    """Wait until everything is compiled, and show the progress."""
    processes = [one.process for one in start_compiling()]
    if all(process.poll() == 0 for process in processes):
        return
    seconds = max(seconds_left(), 1.0)
    label = f"compiling, about {duration(seconds)}, once on this machine"
    waited = 0.0
    with Progress(seconds, label) as progress:
        while any(process.poll() is None for process in processes):
            time.sleep(LOOK_EVERY)
            if waited < 0.95 * seconds:
                progress.advance(LOOK_EVERY)
                waited += LOOK_EVERY
        progress.advance(seconds - waited)
    if any(process.returncode != 0 for process in processes):
        say("compiling beforehand failed; the run compiles on the way, which only takes longer")
