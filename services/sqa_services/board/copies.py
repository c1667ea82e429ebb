"""Detection of copies: submissions that answer a data set like a model that was registered earlier.

Each evaluation on original data stores digests of its answers, which stay when the model is deleted.  The later one of
two alike models is the copy, whichever was evaluated first.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqa.files import bytes_digest, parse_json
from sqa_services.board.storage import Files

SHARE, FEWEST = 0.95, 10  # minimum share of equal answers of a copy; minimum number of questions
Rows = Sequence[Mapping[str, Any]]  # rows of the database


def alike(files: Files, model: Mapping[str, Any], dataset: str, answers: Mapping[str, Any]) -> list[list[Any]]:
    """Store a model's answers by question, and return its pairs with models that answer alike.

    A pair is the earlier model and the later one, each as [time of registration, name].
    """
    if len(answers) < FEWEST or None in answers.values():
        return []
    own = [model["created"], model["name"]]
    mine = {bytes_digest(json.dumps(answer).encode())[:16] for answer in answers.items()}
    path = f"answers/{model['task']}/{dataset}/{model['created']}-{model['name']}.json"
    files.write(path, json.dumps({"model": own, "answers": sorted(mine)}).encode())
    others = [parse_json(file.read_bytes()) for file in (files.root / path).parent.glob("*.json")]
    same = [other["model"] for other in others if len(mine.intersection(other["answers"])) >= SHARE * len(answers)]
    return [sorted([own, other]) for other in same if other != own]


def originals(models: Rows, done: Rows, of_data: Sequence[str]) -> dict[str, str]:
    """Return a dict that maps each copy to the first model with its answers on one of the data sets.

    A config is never a copy, because the board runs it.  A model is not a copy of a former model of its own name.
    """
    first: dict[tuple[Any, ...], list[Any]] = {}
    for row in done:
        for original, copy in row["result"].get("alike", ()) if row["dataset"] in of_data else ():
            first[tuple(copy)] = min(original, first.get(tuple(copy), original))
    submitted = [(model["created"], model["name"]) for model in models if model["kind"] == "submission"]
    return {key[1]: first[key][1] for key in submitted if key in first and first[key][1] != key[1]}
