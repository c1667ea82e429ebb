"""Reference values of facebookresearch/dynabench@0a80494d (evaluation/metrics/metrics.py and datasets/common.py).

vectors/dynabench_board.json holds the output of the unmodified code on fake tasks ("provenance").
"""

import json
from dataclasses import replace
from pathlib import Path

import board_task
import pytest

from sqa.core import DataError, NotComputable
from sqa_services.board.metrics import get_accuracy, get_unperturbed_percent
from sqa_services.board.storage import data_path, split_prefix
from sqa_services.board.worker import evaluate, predicted

VECTORS = json.loads((Path(__file__).parent / "vectors" / "dynabench_board.json").read_text())
NORMAL = VECTORS["eval_cases"][0]
# the fake task registered only accuracy
TASK = replace(board_task.make(), eval_metrics=("accuracy",))


@pytest.mark.parametrize("case", VECTORS["accuracy"], ids=range(len(VECTORS["accuracy"])))
def test_accuracy_equals_dynabench(case: dict) -> None:
    if isinstance(case["v"], str):  # the original raises a TypeError
        with pytest.raises(DataError, match="a text or a list of texts"):
            get_accuracy(case["p"], case["t"])
    else:
        assert get_accuracy(case["p"], case["t"]) == case["v"]


@pytest.mark.parametrize("case", VECTORS["unperturbed_percent"], ids=range(len(VECTORS["unperturbed_percent"])))
def test_unperturbed_percent_equals_dynabench(case: dict) -> None:
    if isinstance(case["v"], str):  # the original divides by zero
        with pytest.raises(NotComputable):
            get_unperturbed_percent(case["p"], case["t"], get_accuracy)
    else:
        assert get_unperturbed_percent(case["p"], case["t"], get_accuracy) == case["v"]


def converted() -> tuple[list[dict], list[dict]]:
    return NORMAL["labels"], [{"id": p["id"], "label": p["label"]} for p in NORMAL["preds"]]


def evaluated(labels: list[dict], responses: list[dict]) -> dict:
    return evaluate(TASK, labels, predicted(TASK, labels, responses))


def test_evaluation_equals_dynabench() -> None:
    assert evaluated(*converted()) == NORMAL["out"]


def test_prediction_for_an_unknown_id_is_ignored() -> None:
    labels, responses = converted()
    [case] = [case for case in VECTORS["eval_cases"] if case["name"] == "extra_prediction"]
    assert evaluated(labels, [*responses, {"id": "other", "label": "a"}]) == case["out"]


def test_without_tags_no_scores_by_tag_are_given() -> None:
    labels, responses = converted()
    [case] = [case for case in VECTORS["eval_cases"] if case["name"] == "perturbed_accuracy"]
    assert evaluated([label | {"tags": []} for label in labels], responses) == case["out"]


def test_missing_prediction_is_refused() -> None:
    labels, responses = converted()
    with pytest.raises(DataError, match="no prediction for 1 of 3 examples, the first is '2'"):
        predicted(TASK, labels, [response for response in responses if response["id"] != "2"])


def test_data_path_equals_dynabench() -> None:
    helpers = VECTORS["helpers"]
    assert data_path("nli", "mnli-dev", "fairness") == helpers["s3_path"]


def test_prefixes_split_and_join() -> None:
    with_prefix, without, message = VECTORS["helpers"]["perturb_prefix"]
    assert list(split_prefix("fairness-mnli-dev", ["mnli-dev"])) == with_prefix
    assert list(split_prefix("mnli-dev", ["mnli-dev"])) == without
    with pytest.raises(DataError) as error:
        split_prefix("foo-bar", ["mnli-dev"])
    assert f"RuntimeError: {error.value}" == message
