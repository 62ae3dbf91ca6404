"""Make the folder ``models/`` beside the package importable as ``bayes_sdc.models``.

In a checkout that folder is not inside the package; in a wheel it is, and the real folder wins.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parent.parent / "models")]
