"""Compiling on a new machine: once, in two processes, while files are read and measured.

numba keeps what it compiled beside the package or in the user's cache. What is not there is
compiled by small jobs on an invented table: one process makes the sampler, the other what measures
the intruder's risk. The run itself reads and measures persons meanwhile, and loads what is ready.
"""

import atexit
import functools
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from bayes_sdc.progress import Progress, say

if TYPE_CHECKING:
    from bayes_sdc.flows.table.read import FlowTable

SECONDS = 60.0  # on two cores, about; on one core twice that
LOOK_EVERY = 0.5  # seconds


def sampler_is_compiled() -> bool:
    """Tell whether numba's cache has the sampler and the national move.

    Where numba does not tell, they count as compiled: then they are when they are first called.
    """
    from bayes_sdc.flows.gibbs.national import move_nation
    from bayes_sdc.flows.gibbs.newton import sweep

    return _in_cache(sweep, move_nation)


def risk_is_compiled() -> bool:
    """Tell whether numba's cache has what measures the intruder's risk."""
    from bayes_sdc.flows.intruder.integrated import add_draws
    from bayes_sdc.flows.intruder.pareto import khat_of_weights

    return _in_cache(add_draws, khat_of_weights)


def _in_cache(*functions: Any) -> bool:
    try:
        # an index is empty when its file, or numba, is another than it was made for
        return all(function._cache._cache_file._load_index() for function in functions)
    except (AttributeError, OSError):
        return True


def invented_table() -> "FlowTable":
    """Return a table on which a small job compiles what a large one needs."""
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
    """Fit an invented table, for what it compiles."""
    from bayes_sdc.flows.fit.fit import fit_flows

    fit_flows(invented_table(), draws=4, tune=2, chains=2, seed=1, cores=1)


def compile_risk() -> None:
    """Measure the risk of an invented table, for what it compiles; the fit here is pure Python."""
    from bayes_sdc.flows.fit.fit import fit_flows
    from bayes_sdc.flows.intruder.measure import intruder_risk
    from bayes_sdc.flows.release.synthesis import synthesize

    table = invented_table()
    posterior = fit_flows(table, sampler="reference", draws=12, tune=6, chains=2, seed=1, cores=1)
    intruder_risk(table, posterior, synthesize(table, posterior, seed=1), cores=1)


@functools.cache
def start_compiling() -> "tuple[subprocess.Popen[bytes], ...]":
    """Start to compile, in processes of their own, what was not compiled on this machine."""
    wanted = []
    if not sampler_is_compiled():
        wanted.append(compile_sampler)
    if not risk_is_compiled():
        wanted.append(compile_risk)
    processes = tuple(
        subprocess.Popen(  # noqa: S603  # ourselves
            [sys.executable, "-c", f"from {__name__} import {task.__name__} as run; run()"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for task in wanted
    )
    for process in processes:
        atexit.register(process.kill)  # a refused run leaves nothing behind that works on
    return processes


def finish_compiling() -> None:
    """Wait until all is compiled, with a progress of its own."""
    processes = start_compiling()
    if all(process.poll() == 0 for process in processes):
        return
    label = f"compiling, about {SECONDS:.0f} s, once on this machine"
    waited = 0.0
    with Progress(SECONDS, label) as progress:
        while any(process.poll() is None for process in processes):
            time.sleep(LOOK_EVERY)
            if waited < 0.95 * SECONDS:
                progress.advance(LOOK_EVERY)
                waited += LOOK_EVERY
        progress.advance(SECONDS - waited)
    if any(process.returncode != 0 for process in processes):
        say("compiling beforehand failed: it is done on the way, which only takes longer")
