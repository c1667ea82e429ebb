"""Preregistered tests: claim, analysis and number of questions were committed before the questions were made."""

from experiments.studies.preregistered.unseen import ITEMS as ITEMS
