"""Label metrics, the Dynascore, and the evaluation of questions."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from board_task import add_data, add_models
from doubles import echo, question
from tables import tables_of

from sqa.core import Buzz, ConfigError, DataError, Guess, NotComputable
from sqa_services.board import metrics, worker
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.metrics import Answer, Meta
from sqa_services.board.rank import dynascore, parse_weights
from sqa_services.board.sqa_task import spanish
from sqa_services.board.task import load_tasks
from sqa_services.board.worker import delta, evaluate

TABLES = tables_of(__file__)

UP, DOWN = Meta("", "up"), Meta("", "down", -1, 10.0)


def test_macro_f1_is_the_mean_over_labels() -> None:
    # a: 2*1/(1+2) = 2/3, b: 2*1/(2+1) = 2/3, c: 1
    assert metrics.get_macro_f1(["a", "b", "b", "c"], ["a", "a", "b", "c"]) == 77.78


def test_squad_f1_takes_best_normalised_answer() -> None:
    assert metrics.get_squad_f1(["The Cat!"], [["a dog", "cat"]]) == 100.0
    assert metrics.get_squad_f1(["black cat", "", "x"], ["cat", [], "y"]) == 55.56  # 2/3, 1 and 0
    text, other = " ".join(["x"] + 40 * ["y"]), " ".join(["x"] + 22 * ["z"])
    assert metrics.get_squad_f1([text], [other]) == 3.13  # 2PR / (P + R) in floats, not 1/32, which gives 3.12


def test_metrics_refuse_unequal_or_empty_lists() -> None:
    with pytest.raises(DataError, match="2 predictions for 1 targets"):
        metrics.get_accuracy(["a", "b"], ["a"])
    for get in (metrics.get_accuracy, metrics.get_macro_f1, metrics.get_squad_f1, metrics.get_bleu):
        with pytest.raises(NotComputable):
            get([], [])


def test_less_lag_and_memory_are_better() -> None:
    assert metrics.meta_of("dal") == Meta("words", "DAL", -1, 50.0) and metrics.meta_of("ew") == Meta("", "EW")
    assert metrics.meta_of("memory_utilization").utility_direction == -1
    with pytest.raises(ConfigError, match="unknown board metric 'eww', did you mean 'ew'"):
        metrics.meta_of("eww")


# ------------------------------------------------------------------------------------------- metrics of a user

OWN = """from sqa_services.board.metrics import Additive, Meta, Metric

def long(predictions, targets):
    return 100.0 * sum(len(label) > 3 for label in predictions) / len(predictions)

def build():
    return Metric(long, Meta("%", "Long labels", -1, 100.0))

def undefined():
    return Metric(lambda predictions, targets: float("nan"), Meta("", "Undefined"))

def lag():
    return Additive("laal", 50.0)

def nothing():
    return 3
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path


def test_metric_of_a_user_is_evaluated_and_ranked(mine: Path) -> None:
    board = Board.open(BoardConfig(mine / "board", tasks=("board_task:make",), metrics=("mine.py:build",)))
    add_data(board)
    add_models(board, short={}, half={"answers": {"eins": "a", "": "long"}})
    worker.work(board, until_empty=True)
    ranked = board.leaderboard("toy", "mine.py:build=1")
    assert ranked["metrics"]["mine.py:build"] == asdict(Meta("%", "Long labels", -1, 100.0))
    shown = {row["model"]: row["metrics"]["mine.py:build"] for row in ranked["rows"]}
    assert shown == {"short": 0.0, "half": pytest.approx(200 / 3)}
    assert ranked["rows"][0]["model"] == "short"  # the lower value is better
    board.database.close()


def test_additive_metric_of_a_user_has_an_interval(mine: Path) -> None:
    task = replace(spanish(), eval_metrics=("ew", "mine.py:lag"))
    metadata = json.loads(evaluate(task, *cases(["Spain", "France"]))["metadata_json"])
    assert set(metadata["intervals"]) == {"ew", "mine.py:lag"}


def test_plugins_register_metrics(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(mine))
    monkeypatch.setitem(metrics.METRICS.entries, "long-labels", "mine:build")
    assert metrics.metric("long-labels")(["long", "a"], ["b", "b"]) == 50.0


def test_wrong_metric_of_a_user_is_refused(mine: Path) -> None:
    with pytest.raises(ConfigError, match="returned a int, not a Metric"):
        load_tasks(metrics=("mine.py:nothing",))
    with pytest.raises(ConfigError, match="unknown board metric 'acuracy', did you mean 'accuracy'"):
        load_tasks(metrics=("acuracy",))
    with pytest.raises(DataError, match="Undefined: a metric must return a finite number, got nan"):
        metrics.metric("mine.py:undefined")(["a"], ["a"])


# ----------------------------------------------------------------------------------------------------- Dynascore


def test_dynascore_equals_hand_computed_values() -> None:
    # by increasing p: p 10, 20, 40; memory 4, 8, 3; utility 6, 2, 7; |changes| 4, 5 over 10, 20: mean rate .325
    rows = [{"p": 10.0, "m": 4.0}, {"p": 40.0, "m": 3.0}, {"p": 20.0, "m": 8.0}]
    scores = dynascore(rows, "p", {"p": 3.0, "m": 1.0}, {"p": UP, "m": DOWN})
    expected = [0.75 * row["p"] + 0.25 * (10 - row["m"]) / 0.325 for row in rows]
    assert scores == pytest.approx(expected)


def test_dynascore_skips_equal_performances() -> None:
    rows = [{"p": 10.0, "m": 1.0}, {"p": 10.0, "m": 9.0}, {"p": 20.0, "m": 5.0}]
    scores = dynascore(rows, "p", {"p": 1.0, "m": 1.0}, {"p": UP, "m": UP})
    assert scores[0] == pytest.approx(0.5 * 10 + 0.5 * 1 / 0.4)  # only the pair 10 -> 20 counts: |5 - 9| / 10


@pytest.mark.parametrize(("rows", "problem"), TABLES["dynascore_refuses_to_divide_by_zero"])
def test_dynascore_refuses_to_divide_by_zero(rows: list[dict], problem: str) -> None:
    with pytest.raises(NotComputable, match=problem):
        dynascore(rows, "p", {"p": 1.0, "m": 1.0}, {"p": UP, "m": UP})


def test_weights_are_parsed_and_checked() -> None:
    assert parse_weights("a=4, b=0.5,", ["a", "b"]) == {"a": 4.0, "b": 0.5}
    with pytest.raises(ConfigError) as error:
        parse_weights("c=1,a=-1,b,a=nan", ["a", "b"])
    assert len(error.value.problems) == 4
    for weights in ({"p": 0.0}, {"p": 2.0, "m": -1.0}):
        with pytest.raises(ConfigError, match="at least one > 0"):
            dynascore([{"p": 1.0, "m": 1.0}, {"p": 2.0, "m": 3.0}], "p", weights, {"p": UP, "m": UP})


# ----------------------------------------------------------------------------------------------------- questions


def answered(q, page: str) -> Answer:
    emissions = echo(q)
    guesses = tuple((Guess(page, 1.0),) for _ in emissions)
    return Answer(emissions, guesses, tuple(Buzz(1.0, i == 0) for i in range(len(emissions))))


def cases(pages: list[str], suffix: str = "", **more: str) -> tuple[list[dict], list[Answer]]:
    questions = [question(f"q{i}{suffix}") for i in range(len(pages))]
    labels = [
        {"id": q.id, "answer": q, "tags": ["odd" if i % 2 else "even"], "input_id": f"q{i}", **more}
        for i, q in enumerate(questions)
    ]
    return labels, list(map(answered, questions, pages))


def test_results_have_intervals_and_tags() -> None:
    result = evaluate(spanish(), *cases(["Spain", "France", "Spain", "France"]))
    metadata = json.loads(result["metadata_json"])
    assert metadata["qa_accuracy"] == 0.5 and result["perf"] == metadata["ew"] > 0
    low, high = metadata["intervals"]["qa_accuracy"]
    assert 0 <= low < 0.5 < high <= 1
    assert [(row["tag"], row["n"], row["perf"] > 0) for row in metadata["perf_by_tag"]] == [
        ("even", 2, True),
        ("odd", 2, False),
    ]


def test_metric_without_value_gives_its_reason() -> None:
    labels, predictions = cases(["Spain"])
    silent = [Answer(prediction.emissions, None, None) for prediction in predictions]
    with pytest.raises(NotComputable, match="no guesser ran"):
        evaluate(spanish(), labels, silent)


def test_refused_metric_keeps_other_tags() -> None:
    labels, predictions = cases(["Spain"] * 3)
    labels[1]["answer"] = replace(labels[1]["answer"], reference=())
    metadata = json.loads(evaluate(spanish(), labels, predictions)["metadata_json"])
    assert "corpus_bleu" in metadata["refusals"] and "corpus_bleu" not in metadata["intervals"]
    assert {row["tag"]: "corpus_bleu" in row["perf_dict"] for row in metadata["perf_by_tag"]} == {
        "even": True,
        "odd": False,
    }


def test_unperturbed_percent_covers_changed_examples() -> None:
    labels, predictions = cases(["Spain", "Spain", "Spain", "France"])
    copies, copied = cases(["Spain", "France", "Spain"], "_typos", transform="typos")
    result = delta(spanish(), "robustness", labels, predictions, copies, copied)
    assert result["robustness"] == 66.67
    [row] = json.loads(result["metadata_json"])["transforms"]
    assert (row["transform"], row["n"], row["unperturbed_percent"]) == ("typos", 3, 66.67)
