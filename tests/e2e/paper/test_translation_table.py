"""The table of translators on bundled questions and a few made sentences: its files and its numbers."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from dataclasses import replace

import pytest
import sacrebleu
import yaml
from refusals import refused
from small_ablation import changed
from small_ablation import rows as read_rows

from experiments.lab.ledger import Row
from experiments.studies.translation_table import TableConfig, main, quality_over_lag, shares
from sqa.core.errors import ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa.files.yaml_reader import read_yaml
from sqa.run.config import load

SENTENCES = (
    ("La casa roja está cerca del río .", "The red house is near the river ."),
    ("Un gato negro duerme .", "A black cat is asleep ."),
    ("Sí .", "Yes ."),
)
# One line in, one line out: drops every fifth word, and says the last one of a long line six times.
PROGRAM = """
import sys
for line in sys.stdin:
    words = [word for i, word in enumerate(line.split(), 1) if i % 5]
    print(" ".join(words + words[-1:] * 5 * (len(words) > 12)))
"""
FOOLISH = [sys.executable, "-c", PROGRAM]


def translated(sentence: str) -> str:
    """What the program writes for a whole sentence."""
    words = [word for i, word in enumerate(sentence.split(), 1) if i % 5]
    return " ".join(words + words[-1:] * 5 * (len(words) > 12))


def written(tmp_path):
    """Two translators that are here, two that are not, two sets that are here, one that is not."""
    (tmp_path / "made.tsv").write_text("".join("\t".join(pair) + "\n" for pair in SENTENCES), encoding="utf-8")
    foolish = {"name": "command", "command": FOOLISH, "blank_lines": 0}
    human = {"name": "fixed", "reveal": "full"}
    absent = {"name": "command", "command": ["no-such-program"]}
    folder = str(tmp_path / "nowhere")
    untrained = {"name": "pbmt", "model": folder}
    translators = [
        {"label": "foolish", "pair": "es-en", "k": [2, "full"], "translator": foolish},
        {"label": "human", "pair": "es-en", "translator": human},
        {"label": "absent", "pair": "es-en", "needs": {"program": "no-such-program"}, "translator": absent},
        {"label": "untrained", "pair": "es-en", "needs": {"folder": folder}, "translator": untrained},
        {"label": "Polish", "pair": "pl-en", "translator": foolish},
    ]
    sets = [{"name": name, "pair": "es-en"} for name in ("mini-es", str(tmp_path / "made.tsv"), "gone.tsv")]
    mapping = {"name": "few", "sets": sets, "translators": translators, "resamples": 50, "limit": 4}
    path = tmp_path / "few.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


@pytest.fixture
def config(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished table, and what was printed."""
    folder = tmp_path_factory.mktemp("table")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(written(folder), folder / "runs")
    return folder, out.getvalue(), err.getvalue()


def lines(text: str) -> dict[tuple[str, ...], dict[str, str]]:
    """(test, translator, k, metric) -> a line of the table."""
    rows = list(csv.DictReader(io.StringIO(text.split("\n/")[0])))
    return {(row["test"], row["translator"], row["k"], row["metric"]): row for row in rows}


def test_table(finished):
    tmp_path, out, err = finished
    folder = tmp_path / "runs" / "few"
    assert out.startswith((folder / "table.csv").read_text(encoding="utf-8"))
    names = ["differences.tsv", "figure8.pdf", "figure8.png", "table.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    made = str(tmp_path / "made.tsv")
    rows = lines(out)
    expected = [("foolish", "2"), ("foolish", "full"), ("human", "-")]
    cells = list(dict.fromkeys(key[:3] for key in rows))
    assert cells == [(test, *row) for test in ("mini-es", made) for row in expected]
    for (*_, metric), row in rows.items():
        if metric in ("bleu", "chrf", "dal"):
            assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
        if metric == "bleu":
            assert row["signature"].endswith(f"version:{sacrebleu.__version__}")

    left_out = {row["guesser"]: row["note"] for row in read_rows(folder / "differences.tsv")}
    assert left_out[f"{made} absent"] == "the program no-such-program is not installed"
    assert left_out["mini-es untrained"] == f"there is no folder {tmp_path / 'nowhere'}"
    assert left_out["gone.tsv"].startswith("gone.tsv") and len(left_out) == 5
    assert "mini-es absent: left out, the program" in err


def test_numbers_are_sacrebleus_on_the_same_lines(finished):
    rows, made = lines(finished[1]), str(finished[0] / "made.tsv")
    questions = load_questions("mini-es", 4)
    texts = {
        "mini-es": (
            [" ".join(translated(" ".join(words)) for words in q.sentences) for q in questions],
            [q.reference_text for q in questions],
        ),
        made: ([translated(s) for s, _ in SENTENCES], [t for _, t in SENTENCES]),
    }
    for test, (hypotheses, references) in texts.items():
        scores = sacrebleu.corpus_bleu(hypotheses, [references]), sacrebleu.corpus_chrf(hypotheses, [references])
        for metric, score in zip(("bleu", "chrf"), scores, strict=True):
            row = rows[test, "foolish", "full", metric]
            assert int(row["n"]) == len(references) and float(row["value"]) == pytest.approx(score.score, abs=1e-6)
    assert float(rows[made, "human", "-", "bleu"]["value"]) == pytest.approx(100)
    sizes = [len(source.split()) for source, _ in SENTENCES]  # all was read first
    assert float(rows[made, "foolish", "full", "dal"]["value"]) == pytest.approx(sum(sizes) / len(sizes))
    assert float(rows[made, "foolish", "full", "copied"]["value"]) == 0
    assert float(rows["mini-es", "foolish", "full", "looping"]["value"]) > 0


def test_second_run_translates_nothing_and_gives_the_same_files(finished, capsys, monkeypatch):
    folder, _, err = finished
    before = {path: path.read_bytes() for path in (folder / "runs" / "few").iterdir()}
    monkeypatch.chdir(folder)
    main(folder / "few.yaml", folder / "runs")
    assert " question, 00:00, ? to go" in err
    assert " question, " not in capsys.readouterr().err  # no progress: the store has all
    assert {path: path.read_bytes() for path in (folder / "runs" / "few").iterdir()} == before


def test_one_set_only_and_nothing_to_measure(config, tmp_path, capsys, monkeypatch):
    main(config, tmp_path / "runs", ["mini-es"])
    assert {key[0] for key in lines(capsys.readouterr().out)} == {"mini-es"}
    refused(ConfigError, "did you mean 'mini-es'", main, config, tmp_path / "runs", ["mini-e"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"nothing to measure\ngone.tsv"):
        main(config, tmp_path / "runs", ["gone.tsv"])


def test_wrong_configs_name_the_place(config, tmp_path):
    translators = read_yaml(config)["translators"]
    sets = [{"name": "mini-es", "pair": "pl-en"}]
    refused(ConfigError, "mini-es is in es, its pair is pl-en", main, changed(config, sets=sets), tmp_path / "runs")
    translators[0]["translator"]["comand"] = translators[0]["translator"].pop("command")
    translators[1]["k"] = [3]
    with pytest.raises(ConfigError) as caught:
        load(changed(config, translators=translators), TableConfig)
    problems = "\n".join(caught.value.problems)
    assert "translators[0].translator.comand: unknown, did you mean 'command'" in problems
    assert "translators[1].translator.k: unknown" in problems


def test_quality_over_lag_has_bleu_over_dal_of_those_with_a_lag():
    """Two k of a and one of b on one test set; c has no lag."""
    values = [("a", "1", 20.0, 2.0), ("a", "3", 25.0, 4.0), ("b", "1", 15.0, 3.0), ("c", "1", 30.0, None)]
    rows = [Row(("es-en", "flores", name, k), "bleu", bleu, n=9) for name, k, bleu, _ in values]
    rows += [Row(("es-en", "flores", name, k), "dal", lag, n=9) for name, k, _, lag in values if lag is not None]
    rows += [replace(row, cell=(row.cell[0], test, *row.cell[2:])) for test in ("xqb", "news") for row in rows]
    [axes, *more] = [axes for axes in quality_over_lag(rows).axes if axes.lines]
    assert [each.get_title(loc="left") for each in more] == ["BLEU, xqb, 9", "BLEU, news, 9"]
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert axes.get_title(loc="left") + axes.get_title() == "BLEU, flores, 9"
    assert drawn == [([2.0, 4.0], [20.0, 25.0]), ([3.0], [15.0])]


def test_shares():
    pairs = [("a b c d", "a b c d"), ("a", "a"), ("x y z w", ""), ("e f g h", "no no no no")]
    assert shares(pairs) == (1 / 4, 1 / 3, 1 / 4)
