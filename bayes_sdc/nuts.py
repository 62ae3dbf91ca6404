"""NUTS by nutpie, all or nothing: Ctrl-C ends it, and half a chain never counts as a whole one."""

from typing import Any


def sample_nuts(compiled: Any, **settings: Any) -> Any:
    """Sample a compiled model; an interruption is raised.

    Parameters
    ----------
    compiled : nutpie model
        With its data.
    **settings
        Of ``nutpie.sample``.

    Returns
    -------
    DataTree
        As nutpie gives it, without the warm-up.
    """
    import nutpie

    background = nutpie.sample(
        compiled, progress_bar=False, save_warmup=False, blocking=False, **settings
    )
    try:
        return background.wait()
    except BaseException:
        # nutpie's own handling of Ctrl-C returns the draws so far
        background.cancel()
        raise
