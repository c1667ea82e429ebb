"""Preregistered tests: claim, analysis and number of questions were committed before the questions were made."""

from experiments.studies.preregistered import second, unseen

ITEMS = (*unseen.ITEMS, *second.ITEMS)
