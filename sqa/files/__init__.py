"""File input and output: atomic writes, the result store, models, strict readers."""

from sqa.core import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
