"""The figures that README.md and docs/ show, as data; `python -m experiments.expected` renders, checks, collects."""
