"""Whether numba has compiled functions on this machine already: the first time takes long."""

from typing import Any


def in_cache(*functions: Any) -> bool:
    """Tell whether numba's cache on disk has compiled functions.

    Where numba does not tell, they count as compiled: they will be at their first call.
    """
    try:
        # an index is empty when it was made for another version of the file or of numba
        return all(function._cache._cache_file._load_index() for function in functions)
    except (AttributeError, OSError):
        return True
