"""Bayesian statistical disclosure control: the public names.

They are listed in ``__init__.pyi`` and loaded at first use, so that importing the package is quick.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("bayes-sdc")
