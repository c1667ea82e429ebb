"""Execute runs: config, the four stages, result folders, and many runs on workers."""

from sqa.core import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
