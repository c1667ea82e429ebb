from sqa.api import Experiment as Experiment
from sqa.api import Results as Results
from sqa.api import Run as Run
from sqa.api import Table as Table
from sqa.api import compare as compare
from sqa.api import load as load
from sqa.api import run as run

__version__: str
