"""SimulEval agents as translators: the words and delays equal those that SimulEval's evaluator records."""

import sys

import pytest

from benchmarks.compare_simuleval import evaluate
from sqa.core import ConfigError, DataError, Question, check_emissions
from sqa.data.datasets import load_questions
from sqa_services.simuleval import agent
from sqa_services.simuleval.agent import SimulevalConfig, build

pytestmark = pytest.mark.needs("simul")
AGENTS = '''
from dataclasses import dataclass
from simuleval.agents import SpeechToTextAgent, TextToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@dataclass
class Late:  # creating a dataclass requires that its module is in sys.modules
    words: int


@entrypoint
class WaitK(TextToTextAgent):
    """Copies, k words late."""

    def __init__(self, args):
        super().__init__(args)
        self.late = Late(args.waitk)

    @staticmethod
    def add_args(parser):
        parser.add_argument("--waitk", type=int, default=3)

    def policy(self):
        source, written, ended = self.states.source, len(self.states.target), self.states.source_finished
        if len(source) - written >= self.late.words or ended:
            return WriteAction(source[written].upper(), finished=ended and written + 1 == len(source))
        return ReadAction()


class Nosy(TextToTextAgent):
    """Decides at the last source word, knowing that it is the last."""

    def policy(self):
        n, finished = len(self.states.source), self.states.source_finished
        return WriteAction(f"last{n} bye" if finished else f"not{n}", finished=finished)


class Hasty(TextToTextAgent):
    """Finishes before the source does."""

    def policy(self):
        n = len(self.states.source)
        return WriteAction(str(n), finished=n == 2 or self.states.source_finished)


class Ragged(TextToTextAgent):
    """Writes spaces, nothing, and several words at once; finishes two steps after the end."""

    def reset(self):
        super().reset()
        self.after = 0

    def policy(self):
        self.after += self.states.source_finished
        if self.after == 3:
            return WriteAction("", finished=True)
        return WriteAction(["", "  a \\t b ", " "][len(self.states.source) % 3], finished=False)


class Wrong(TextToTextAgent):
    def pushpop(self, segment, states=None, upstream_states=None):
        return "words"


class Endless(TextToTextAgent):
    def policy(self):
        return ReadAction()


class Speech(SpeechToTextAgent):
    pass


NOT_AN_AGENT = 3
'''
RUNNING = ["WaitK", "Nosy", "Hasty", "Ragged"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "my_agents.py"
    path.write_text(AGENTS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def questions():
    return load_questions("mini-es", limit=4)


def make(path, name, *args):
    return build(SimulevalConfig(f"{path}:{name}", args))


@pytest.mark.parametrize("name", RUNNING)
def test_words_and_delays_equal_simuleval(path, questions, name):
    short = [Question(f"short{n}", "test", "es", (("one", "two")[:n],), ("x",), "Page") for n in (1, 2)]
    asked = [*questions, *short]
    recorded = evaluate(make(path, name).agent, [" ".join(words) for question in asked for words in question.sentences])
    ours = []
    for question, emissions in zip(asked, make(path, name).translate_batch(asked), strict=True):
        check_emissions(question, emissions)
        for i in range(len(question.sentences)):
            of_sentence = [e for e in emissions if e.sentence == i]
            ours.append(([e.token for e in of_sentence], [e.g for e in of_sentence]))
    assert ours == [tuple(sentence) for sentence in recorded] and any(words for words, _ in ours)


def test_source_without_length_ends_one_step_later(path):
    words = list(make(path, "Nosy").translate(word for word in ["a", "b"]))
    assert words == ["not1", "not2", "last2", "bye"]
    assert list(make(path, "Nosy").translate(iter(["a", "b"]))) == ["not1", "last2", "bye"]


def test_each_agent_has_its_own_arguments(path, questions):
    late, early = make(path, "WaitK", "--waitk", 7), make(path, "WaitK", "--waitk", 1)
    assert (late.agent.late.words, early.agent.late.words) == (7, 1) and "--waitk" not in sys.argv
    assert late.agent.args.source_segment_size == 1  # SimulEval's own options are set, too
    [first] = {e.g for e in early.translate_batch(questions[:1])[0][:1]}
    [seventh] = {e.g for e in late.translate_batch(questions[:1])[0][:1]}
    assert (first, seventh) == (1, 7)


def test_fingerprint_covers_arguments_code_and_files(path, tmp_path):
    weights, prints = tmp_path / "weights", []
    weights.mkdir()
    for content in ("1", "2"):
        (weights / "model.bin").write_text(content)
        prints += [make(path, "WaitK", "--output", str(weights)).fingerprint() for _ in range(2)]
        prints.append(make(path, "WaitK", f"--output={weights}/model.bin").fingerprint())
    prints += [make(path, "WaitK").fingerprint(), make(path, "WaitK", "--waitk", 2).fingerprint()]
    prints.append(make(path, "Nosy").fingerprint())
    other = tmp_path / "my_agents.py"
    other.write_text(AGENTS + "\n# changed", encoding="utf-8")
    prints.append(make(other, "WaitK").fingerprint())
    assert prints[0] == prints[1] and prints[3] == prints[4] and len(set(prints)) == 8


@pytest.mark.parametrize(
    ("agent", "args", "expected"),
    [
        (":", (), "agent: must be file.py:ClassName or module:ClassName"),
        ("none.py:Agent", (), "agent: no such file: none.py"),
        ("no_such_module:Agent", (), "needs the Python module 'no_such_module', which is not installed"),
        ("{}:Nobody", (), "has no agent class 'Nobody'"),
        ("{}:NOT_AN_AGENT", (), "has no agent class"),
        ("{}:Speech", (), "is speech to text; only text-to-text"),
        ("{}:WaitK", ("--waitk", "many"), "args: argument --waitk: invalid int value: 'many'"),
        ("{}:WaitK", ("--nonsense",), "args: unrecognized arguments: --nonsense"),
        ("{}:WaitK", ("--eval-latency-unit", "char"), "args: --eval-latency-unit must be word, got char"),
    ],
)
def test_invalid_agents_are_refused(path, agent, args, expected):
    with pytest.raises(ConfigError, match=expected):
        build(SimulevalConfig(agent.format(path), args))


def test_agent_errors_are_reported(path, questions, monkeypatch):
    monkeypatch.setattr(agent, "PATIENCE", 50)
    for problem in (
        "Endless: did not finish within 50 steps after the end",
        "Wrong: pushpop returned str, not a SimulEval Segment",
    ):
        with pytest.raises(DataError, match=problem):
            make(path, problem.partition(":")[0]).translate_batch(questions[:1])
