"""The evaluation server hides the unread source and restricts participants."""

from pathlib import Path

import pytest
import requests
from stand_ins.iwslt_loopback import get, serving, translate

from sqa.core.errors import ConfigError, DataError
from sqa_services.net.address import Address
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.corpus import TextCorpus
from sqa_services.protocols.iwslt.http import ServeConfig
from sqa_services.protocols.iwslt.session import read_participants

CORPUS = TextCorpus(
    tuple(tuple(f"w{n}-{i}" for i in range(4 + n % 5)) for n in range(12)), tuple(f"r{n} a b c" for n in range(12))
)
ANN, BOB, OWN = "ann-ann-ann-ann-", "bob-bob-bob-bob-", "organiser-organiser"


# ----------------------------------------------------------------------------------------------------- hidden text


@pytest.mark.parametrize("dialect", ["iwslt-2020", "simuleval-1.0.2"])
def test_results_show_only_words_that_were_read(dialect: str) -> None:
    """Regression test: a client that requested results before translating had a BLEU of 100 and an AL of -10.4."""
    with serving(CORPUS, ServeConfig(dialect=dialect)) as url:
        service = EvaluationService(url)
        untold = {"reference": None, "source_length": None, "reference_length": None, "metric": {}}
        result = get(f"{url}/result?instance_id=3").json()
        assert result | untold | {"source": ""} == result
        service.get_src(3)
        service.send_hypo(3, "word")
        get(f"{url}/result")  # regression: a request for all scores revealed the sentence's BLEU
        result = get(f"{url}/result?instance_id=3").json()
        assert result | untold | {"source": "w3-0"} == result
        service.send_hypo(3, "</s>")
        result = get(f"{url}/result?instance_id=3").json()
        assert result["source"] == "w3-0" and result["source_length"] == 7
        assert result["metric"]["sentence_bleu"] >= 0 and result["reference"] is None
        assert not any(
            ref in get(f"{url}/result?instance_id={n}").text for n in range(12) for ref in ("a b c", f"r{n}")
        )


# ---------------------------------------------------------------------------------------------------- participants


def test_participant_has_one_session_and_one_try(tmp_path: Path) -> None:
    config = ServeConfig(address=Address(token=OWN), participants=(("ann", ANN), ("bob", BOB)), output=tmp_path)
    with serving(CORPUS, config) as url:
        ann = EvaluationService(url, token=ANN)
        ann.new_session()  # clients of the guide start with a reset, which is allowed before the first read
        assert ann.get_src(0)["segment"] == "w0-0"
        for path in ("/sessions/other/src?sent_id=0", "/sessions/bob/src?sent_id=0", "/start", "/sessions/bob/result"):
            assert get(url + path, ANN).status_code == 403, path
        for method, path in (("POST", "/"), ("DELETE", "/sessions/ann"), ("DELETE", "/sessions/bob")):
            headers = {"Authorization": f"Bearer {ANN}"}
            assert requests.request(method, url + path, headers=headers, timeout=30).status_code == 403
        assert get(f"{url}/src?sent_id=0", "wrong").status_code == 401
        assert EvaluationService(url, token=BOB).get_src(0)["segment"] == "w0-0"  # bob's own session
        assert get(f"{url}/sessions/ann/src?sent_id=0", ANN).json()["segment"] == "w0-1"  # session by name
        ann.send_hypo(0, "x")
        assert "SoFar" not in ann.get_scores()  # only the organiser sees partial scores
        assert get(f"{url}/sessions/ann/result", OWN).json()["SoFar"]["BLEU"] is not None
        with pytest.raises(DataError, match="the server answered 403"):
            ann.new_session()
        assert requests.post(f"{url}/sessions/ann", auth=("any", OWN), timeout=30).status_code == 200
        translate(ann)
        assert ann.get_scores()["BLEU"] is not None
    assert (tmp_path / "sessions" / "ann" / "text").exists()


def test_participants_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "people"
    path.write_text(f"# who\nann {ANN}\n\nbob {BOB}\n")
    assert read_participants(path) == {"ann": ANN, "bob": BOB}
    path.write_text(f"ann short\nbob {BOB}\nbob {ANN}\neve {BOB}\n../x {ANN}\n")
    with pytest.raises(ConfigError) as error:
        read_participants(path)
    assert [problem.split(":")[1] for problem in error.value.problems] == ["1", "3", "4", "5"]
    for token, strict in ((None, False), (OWN, True), (ANN, False)):
        with pytest.raises(ConfigError, match="--participants|--token") as error:
            ServeConfig(strict=strict, address=Address(token=token), participants=(("ann", ANN),))
        assert len(error.value.problems) == 1
