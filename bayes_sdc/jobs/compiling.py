"""Compiling on a new machine: once, in a process of its own, while files are read and measured.

numba keeps what it compiled beside the package or in the user's cache. Where the sampler is not
there, a small job is run in another process, which compiles all that a job on a table needs; this
one reads and measures persons meanwhile, and loads what was compiled.
"""

import atexit
import functools
import subprocess
import sys
import time

from bayes_sdc.progress import Progress, say

SECONDS = 120.0  # of one core, about
LOOK_EVERY = 0.5  # seconds


def compiled_before() -> bool:
    """Tell whether numba's cache has the sampler, the national move and the intruder's risk.

    Where numba does not tell, they count as compiled: then they are when they are first called.
    """
    from bayes_sdc.flows.gibbs.national import move_nation
    from bayes_sdc.flows.gibbs.newton import sweep
    from bayes_sdc.flows.intruder.integrated import add_draws

    try:
        # an index is empty when its file, or numba, is another than it was made for
        return all(
            function._cache._cache_file._load_index()
            for function in (sweep, move_nation, add_draws)
        )
    except (AttributeError, OSError):
        return True


def compile_for_flows() -> None:
    """Run a small job on an invented table, for what it compiles."""
    from bayes_sdc.flows.protect import protect_flows
    from bayes_sdc.flows.table.read import read_flows
    from bayes_sdc.flows.table.simulate import simulate_flows

    table = read_flows(
        simulate_flows(areas=12, states=2, seed=3),
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )
    protect_flows(table, draws=12, tune=6, chains=2, releases=1, seed=1, cores=1)


@functools.cache
def start_compiling() -> "subprocess.Popen[bytes] | None":
    """Start to compile in a process of its own, where that was not done on this machine."""
    if compiled_before():
        return None
    process = subprocess.Popen(  # noqa: S603  # ourselves
        [sys.executable, "-c", f"from {__name__} import compile_for_flows as run; run()"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.kill)  # a run that was refused leaves nothing behind that works on
    return process


def finish_compiling() -> None:
    """Wait until all is compiled, with a progress of its own."""
    process = start_compiling()
    if process is None or process.poll() == 0:
        return
    label = f"compiling, about {SECONDS:.0f} s of a core, once on this machine"
    waited = 0.0
    with Progress(SECONDS, label) as progress:
        while process.poll() is None:
            time.sleep(LOOK_EVERY)
            if waited < 0.95 * SECONDS:
                progress.advance(LOOK_EVERY)
                waited += LOOK_EVERY
        progress.advance(SECONDS - waited)
    if process.returncode != 0:
        say("compiling beforehand failed: it is done on the way, which only takes longer")
