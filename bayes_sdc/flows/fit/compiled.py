"""Whether numba has compiled on this machine what a fit needs; the first time takes a minute."""

from bayes_sdc.compiled import in_cache

SECONDS = 60.0  # of one core, to compile the sampler: measured on an empty cache


def sampler_is_compiled() -> bool:
    """Tell whether numba's cache has the sampler and the national move."""
    from bayes_sdc.flows.gibbs.national import move_nation
    from bayes_sdc.flows.gibbs.newton import sweep

    return in_cache(sweep, move_nation)
