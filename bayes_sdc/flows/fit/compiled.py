"""Whether numba has compiled on this machine what a fit needs: the first time takes a minute."""

from typing import Any

SECONDS = 60.0  # of one core, to compile the sampler: measured on an empty cache


def sampler_is_compiled() -> bool:
    """Tell whether numba's cache has the sampler and the national move."""
    from bayes_sdc.flows.gibbs.national import move_nation
    from bayes_sdc.flows.gibbs.newton import sweep

    return in_cache(sweep, move_nation)


def in_cache(*functions: Any) -> bool:
    """Tell whether numba's cache on disk has compiled functions.

    Where numba does not tell, they count as compiled: then they are when they are first called.
    """
    try:
        # an index is empty when its file, or numba, is another than it was made for
        return all(function._cache._cache_file._load_index() for function in functions)
    except (AttributeError, OSError):
        return True
