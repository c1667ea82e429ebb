"""Item `few-shot`: a pretrained language model that is shown three examples and trained on nothing (docs/llm.md)."""

from experiments.lab import grid_rows
from experiments.lab.tables import pivot
from experiments.paper.figure3 import ANSWERS, BEST, ES, TEXT

ITEMS = (
    grid_rows.of_grid(
        "few-shot",
        "a language model with three examples, without any training, beside the trained small Transformer",
        config="studies.yaml:few-shot",
        blocks={"es": pivot(("translator",), [*ANSWERS, TEXT[0]], dataset=ES, contestant=BEST, k="full")},
        kept="half an hour of the language model",
    ),
)
