"""Expected wins during translation: the server's scores equal the pipeline's on the same words at the same g."""

from pathlib import Path

import doubles
import pytest
from small_runs import small_run
from stand_ins.iwslt_loopback import get, put, serving

from sqa.core import ConfigError, DataError, SqaError
from sqa.data.datasets import load_questions
from sqa.pipeline import contestant_from
from sqa_services.protocols.iwslt import http
from sqa_services.protocols.iwslt.client import EvaluationService, TranslatorAgent, evaluate
from sqa_services.protocols.iwslt.corpus import Sentence
from sqa_services.protocols.iwslt.http import ServeConfig, make_app
from sqa_services.protocols.iwslt.questions import KEYS, MAX_WORDS, QuestionScorer


def double_scorer(tmp_path: Path, n: int = 6) -> QuestionScorer:
    """Return a scorer of generated questions, whose answers the guesser recognises by a keyword."""
    guesser = doubles.KeywordGuesser(doubles.GuesserConfig())
    buzzer = doubles.FirstGuessBuzzer(doubles.BuzzerConfig())
    return QuestionScorer(load_questions(str(doubles.write_questions(tmp_path / "q.jsonl", n))), guesser, buzzer)


def offline(tmp_path: Path, limit: int) -> dict[str, float | None]:
    """Return the scores of `sqa run` on the same questions."""
    parts = {"guesser": "bm25", "buzzer": {"name": "mlp", "model": "bm25"}, "metrics": list(KEYS)}
    echo = {"name": "doubles:build_translator", "k": 3}
    result = small_run(tmp_path, dataset={"name": "mini-en", "limit": limit}, translator=echo, **parts)
    return {KEYS[m.name]: m.score(result.stats[m.name].sum(axis=0)) for m in result.metrics}


def test_final_scores_equal_those_of_a_run(tmp_path: Path) -> None:
    """BM25 and the MLP buzzer, with four threads that each translate every fourth sentence."""
    limit = 5
    scorer = QuestionScorer(load_questions("mini-en", limit), *contestant_from())
    with serving(scorer.corpus(), ServeConfig(output=tmp_path / "out"), scorer) as url:
        service = EvaluationService(url)
        evaluate(lambda: TranslatorAgent(doubles.EchoTranslator(doubles.EchoConfig(k=3))), service, threads=4)
        scores = service.get_scores()
        nested = EvaluationService(f"{url}/sessions/other").get_src(0)
    expected = offline(tmp_path, limit)
    assert {key: scores[key] for key in expected} == expected
    assert expected["EW"] > 0 and scores["Questions"] == limit and nested["segment_id"] == 0
    assert f"EW, {expected['EW']}\n" in (tmp_path / "out" / "scores").read_text()


def so_far(service: EvaluationService) -> dict:
    """Return the scores of the finished sentences, and check that the scores of the whole session are null."""
    scores = service.get_scores()
    assert scores["EW"] is scores["BLEU"] is None and scores["Finished"] < scores["Sentences"]
    return scores["SoFar"]


def test_partial_scores_follow_the_client(tmp_path: Path) -> None:
    scorer = double_scorer(tmp_path)
    questions = load_questions(str(tmp_path / "q.jsonl"))
    with serving(scorer.corpus(), None, scorer) as url:
        service = EvaluationService(url)
        assert get(f"{url}/result").status_code == 500  # no sentence is finished, as in the original server
        service.get_src(0)
        service.send_hypo(0, "Spain?")
        first = so_far(service)
        assert first | {"Questions": 1, "EW": 0.0, "Accuracy": 0.0} == first
        service.send_hypo(0, "Spain")
        scores = so_far(service)
        assert scores["Accuracy"] == 1.0 and scores["EW"] == scores["OracleEW"] > 0.5
        service.send_hypo(7, "France")  # question 3's second sentence; questions 1 and 2 have no translation
        scores = so_far(service)
        assert scores["Questions"] == 4 and scores["Accuracy"] == 0.25 and questions[3].page == "Spain"
        service.new_session()
        service.send_hypo(0, "Atlantis")
        assert so_far(service)["Accuracy"] == 0.0  # the new session contains nothing of the previous one


def test_score_is_undefined_if_one_question_lacks_it(tmp_path: Path) -> None:
    scorer = double_scorer(tmp_path, 2)
    inner = scorer.row
    scorer.row = lambda index, emissions: inner(index, emissions) | ({"ew": None} if index == 0 else {})
    last = sum(len(question.sentences) for question in scorer.questions) - 1
    scores = scorer.result({last: Sentence(tokens=("Spain",), delays=(1,))}, {})
    assert scores["EW"] is None and scores["Accuracy"] is not None


def test_simuleval_dialect_reports_answer_scores(tmp_path: Path) -> None:
    scorer = double_scorer(tmp_path, 1)
    with serving(scorer.corpus(), ServeConfig(dialect="simuleval-1.0.2"), scorer) as url:
        get(f'{url}/get?info={{"sent_id": 0}}')
        get(f'{url}/send?hypo={{"0": "it is Spain"}}')  # three words, up to the end of the trace
        result = get(f"{url}/result").json()
        assert result["Answers"]["Accuracy"] is None and set(result["Quality"]) == {"BLEU"}
        assert result["SoFar"]["Answers"]["Accuracy"] == 1.0
        assert get(f"{url}/result?instance_id=0").json()["prediction_length"] == 3


def test_only_new_words_are_scored_again(tmp_path: Path) -> None:
    scorer, seen = double_scorer(tmp_path, 2), []
    inner = scorer.row

    def row(index: int, emissions: object) -> object:
        seen.append((index, len(emissions)))
        return inner(index, emissions)

    scorer.row = row
    with serving(scorer.corpus(), None, scorer) as url:
        service = EvaluationService(url)
        service.send_hypo(0, "Spain")
        service.get_scores()
        service.get_scores()
        service.send_hypo(len(scorer.questions[0].sentences), "it")
        service.get_scores()
    assert seen == [(0, 1), (1, 1)]


def test_failing_guesser_returns_500_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scorer = double_scorer(tmp_path, 2)
    inner = scorer.row

    def row(index, emissions):
        if any(e.token == "bad" for e in emissions):
            raise SqaError("the guesser is gone")
        return inner(index, emissions)

    scorer.row = row
    with serving(scorer.corpus(), None, scorer) as url:
        bad, good = EvaluationService(url, session="bad"), EvaluationService(url, session="good")
        bad.send_hypo(0, "bad")
        good.send_hypo(0, "Spain")
        assert get(f"{url}/sessions/bad/result").status_code == 500
        assert so_far(good)["Accuracy"] == 1.0
    assert "the guesser is gone" in caplog.text


def test_words_of_a_question_are_limited(tmp_path: Path) -> None:
    scorer = double_scorer(tmp_path, 1)
    with serving(scorer.corpus(), None, scorer) as url:
        for words, status in ((MAX_WORDS - 1, 200), (2, 413), (1, 200)):
            assert put(f"{url}/hypo?sent_id=0", "w " * words) == status


def test_unservable_configs_are_refused(tmp_path: Path) -> None:
    scorer = double_scorer(tmp_path, 1)
    with pytest.raises(ConfigError, match="omit --strict-2020"):
        make_app(scorer.corpus(), ServeConfig(strict=True), scorer)
    with pytest.raises(ConfigError, match="they contain source and reference"):
        http.serve(None, Path("tgt"), "text", ServeConfig(), "mini-es")
    with pytest.raises(ConfigError, match="--tgt-file: give a file of references, or --questions"):
        http.serve(None, None, "text", ServeConfig())
    asked = doubles.question(sentences=("uno </s> dos",))
    with pytest.raises(DataError, match="q: contains the word </s>"):
        QuestionScorer([asked], *contestant_from("{name: 'doubles:build_guesser'}")).corpus()
