"""How the tests run the commands in README.md and docs/ on bundled data in seconds.

By default a command runs as the page shows it, after the replacements in `WORDS`. `RECIPES` lists commands with larger
differences, such as a `--limit`, other arguments, or commands to run first. `CANNOT` lists commands that do not run,
with the missing requirement.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """Commands to execute in order; by default the command as shown."""

    lines: Sequence[str] = ()
    after: Sequence[str] = ()  # commands of the pages to run first, each once
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Serve:
    """A server on a free port that receives requests and then an interrupt."""

    line: str = ""  # start command; empty: the command as shown
    asks: Sequence[str] = ("GET /",)  # "GET PATH", or commands with {url}
    host: str = ""  # host name of the requests; empty: the server's address
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Cannot:
    """Commands that are not executed, with the reason and the test file that covers them."""

    commands: str  # regular expression for commands of the pages
    why: str
    test: str = ""  # file in tests/


RUNS = "runs/mini_es_wait6_bm25 runs/other runs/third"
WORDS = {  # word on a page -> word that is executed
    "xqb-es": "mini-es",
    "ITEM": "fig8",
    "figN": "fig8",
    "SUBMISSION": "submission.jsonl",
    "LOG": "docs/example/instances.log",
    "tcp://10.0.0.1:8786": "{scheduler}",
    "runs/xqb_es_wait6_bm25": "runs/mini_es_wait6_bm25",
}
CORPORA = "needs parallel corpora, downloads, and trains for an hour"
TOSSUPS = "needs the training tossups, a download"
SCORER_TEST = "../services/tests/golden/test_simulstream_scorers.py"
CANNOT = (
    Cannot(r"python -m pytest .*", "runs this test suite"),
    Cannot(r"sqa reproduce table1", "needs the guessdev questions, a download", "e2e/paper/test_guesser_report.py"),
    Cannot(r"sqa reproduce table4", "needs XOR-TyDi, a download", "e2e/paper/test_table4.py"),
    Cannot(r"sqa reproduce all.*", "takes hours; its items are made one by one", "e2e/paper/test_paper_items.py"),
    Cannot(r"sqa ablation .*slurm:.*", "needs a Slurm cluster", "e2e/cluster/test_cluster.py"),
    Cannot(r"sqa sweep .*device=cuda .*", "needs a GPU", "e2e/cluster/test_cluster_tasks.py"),
    Cannot(
        r"sqa ablation configs/studies\.yaml:(few-shot|scratch|seeds|sweep)",
        "needs a language model, or models trained with several seeds and k",
        "e2e/paper/test_ablation_seeds.py",
    ),
    Cannot(
        r"sqa (run llm\.yaml.*|report runs/continuation .*)",
        "needs a language model's server",
        "unit/engines/test_llm.py",
    ),
    Cannot(r"sqa .* endpoint --endpoint .*", "needs a language model's server", "e2e/documents/test_ask_page.py"),
    Cannot(r"sqa latency .* --segments .*", "needs the package OmniSTEval", "golden/test_segments.py"),
    Cannot(r"sqa scorer simulstream.*", "needs the program simulstream", SCORER_TEST),
    Cannot(r"sqa train curve human-buzzes .*", "needs recorded human buzzes, a download"),
    Cannot(r"sqa train smt configs/(smt|pbmt|lm)_es_en.*|sqa train clean .*", CORPORA, "unit/training"),
    Cannot(
        r"sqa ablation configs/studies.yaml:quality",
        "downloads 3.7 GB of weights",
        "e2e/figures/test_quality_panels.py",
    ),
    Cannot(r"sqa train smt configs/smt_paper_big.*", "needs a GPU and parallel corpora", "unit/training/test_sweep.py"),
    Cannot(r"sqa train guesser configs/train_guessers\.yaml:rerank", TOSSUPS, "unit/guessers"),
    Cannot(r"sqa train buzzer .*", TOSSUPS, "unit/buzzers"),
    Cannot(r"sqa train fairseq .*", "needs a model trained with fairseq", "unit/engines"),
    Cannot(r"sqa validate sqa", "names the command; the next two lines run it"),
    Cannot(r"sqa data fetch", "needs the network", "unit/data/test_download.py"),
    Cannot(r"sqa results update.*", "writes into the pages of the repository", "unit/experiments/test_results_book.py"),
    Cannot(r"sqa --install-completion", "changes the start file of the user's shell"),
)
SLOW = (  # more than a few seconds: only with SQA_DOCS=1
    r"sqa (translations|reproduce(?! mine)|ablation|diagnose|train smt|validate vist) .*|sqa scorer meteor.*"
    r"|sqa export RUN --to pearmut .*"
    r"|sqa run (questions\.yaml translator\.model=|configs/xqb\.yaml:es_apertium).*|.* --scheduler .*"
    r"|python -m guessers\..*"
)
NEEDS = (  # requirements as in tests/needs.py; the command is skipped if one is missing
    (r"sqa (diagnose .*|export RUN --to pearmut .*)", ("eflomal",)),
    (r"sqa (scorer meteor|validate vist).*", ("pycocoevalcap", "java")),
    (r".* --scheduler .*", ("cluster",)),
    (r"sqa run .*name: pbmt.*", ("statistical",)),
    (r"sqa run .*apertium.*", ("apertium",)),
    (r"python -m guessers\.evaluate rerank .*", ("bert",)),
)

SCORED = "SCORE ||| a b c d ||| a b c d\nEVAL ||| 4 4 4 3 2 1 4 3 2 1\n"
WAITK = "--translator '{name: waitk, model: es-en, k: 3}'"
IWSLT = "sqa serve iwslt --src-file src.es --tgt-file tgt.en --output"
SERVE_BOARD = "sqa board serve --host 0.0.0.0 --name board.example.org"
REGISTERED = ("sqa board register-dataset sqa-es mini mini-es --perturb all",)

STARTED = "sqa init start"
VOYAGE = "docs/example/voyage"
MAKE = f"sqa questions make --references {VOYAGE}.en.txt --sources {VOYAGE}.es.txt --pair es-en --output asked.jsonl"
GUESSER = Run(("cd start && sqa train guesser guesser.yaml",), after=(STARTED,))
METEOR = Run(("sqa scorer meteor -l en -norm",), stdin=SCORED[:30])


def work(board: str, *options: str) -> Run:
    """Return commands that register a data set and a model on a new board and evaluate them."""
    register = ("register-dataset sqa-es few few.jsonl", "register-model sqa-es wait-6 configs/mini_es_wait6_bm25.yaml")
    lines = (*register, " ".join(("work --until-empty", *options)))
    return Run([f"sqa board --board {board} {line}" for line in lines])


RECIPES: dict[str, Run | Serve] = {
    "sqa run own.yaml guesser.model=models/pages": Run(
        ("cd start && sqa run own.yaml guesser.model=models/pages",), after=("sqa train guesser guesser.yaml",)
    ),
    "sqa run mine.yaml": Run(("cd start && sqa run mine.yaml",), after=(STARTED,)),
    **{
        line: Run((f"cd start && {line}",), after=("sqa run mine.yaml",))
        for line in (
            "sqa view runs/mine --output page.html",
            "sqa report runs/mine",
            "sqa run mine.yaml guesser=tfidf",
            "sqa sweep mine.yaml guesser=bm25,tfidf",
        )
    },
    "sqa run mini_es_wait6_bm25 k=3": Run(("sqa run configs/mini_es_wait6_bm25.yaml k=3",)),
    "sqa run mini_es_wait6_bm25 translator={name: pbmt, model: pbmt-es-en, k: 3}": Run(
        ("sqa run mini_es_wait6_bm25 limit=1 'translator={name: pbmt, model: pbmt-es-en, k: 3}'",)
    ),
    "sqa run examples/guessers.yaml:fusion": Run(("sqa run examples/guessers.yaml:fusion limit=1",)),
    "sqa config keys translator NAME": Run(("sqa config keys translator waitk",)),
    "sqa run questions.yaml translator.model=runs/smt/fr-en/model": Run(after=("sqa train smt fr_en.yaml",)),
    "sqa sweep CONFIG KEY=VALUE,VALUE": Run(("sqa sweep configs/mini_es_wait6_bm25.yaml k=3,6",)),
    "sqa ablation ablation k=3,6": Run(("sqa ablation configs/ablation.yaml k=3,6",)),
    "sqa compare runs/ablation-xqb-es-wait-k-{3,full}-{bm25,rerank} --over questions,guesser": Run(
        (
            "sqa run configs/mini_es_wait6_bm25.yaml name=a1",
            "sqa run configs/mini_es_wait6_bm25.yaml name=a2 guesser=gru buzzer.model=gru",
            "sqa run configs/mini_es_wait6_bm25.yaml name=b1 k=3",
            "sqa run configs/mini_es_wait6_bm25.yaml name=b2 k=3 guesser=gru buzzer.model=gru",
            "sqa compare runs/a1 runs/a2 runs/b1 runs/b2 --over questions,guesser",
        )
    ),
    "sqa questions show NAME": Run(("sqa questions show mini-es",)),
    **{
        f"sqa ask {VOYAGE}_wait2.log {VOYAGE}_phrase3.log --questions asked.jsonl {option}": Run(after=(MAKE,))
        for option in ("--plot answered.png", "--compare")
    },
    "sqa questions make --references FILE": Run((MAKE,)),
    "sqa latency LOG --questions asked.jsonl": Run(
        (f"sqa latency {VOYAGE}_wait2.log --questions asked.jsonl",), after=(MAKE,)
    ),
    "sqa ask LOG --questions FILE": Run((f"sqa ask {VOYAGE}_wait2.log --questions asked.jsonl",), after=(MAKE,)),
    "sqa report runs/ablation-xqb-es-wait-k-{3,6,full}-bm25 runs/ablation-xqb-es-reference-full-bm25 --output report": (
        Run((f"sqa report {RUNS} --output report",))
    ),
    "sqa sweep mine.yaml k=3,6,9 guesser=bm25,gru --scheduler local:4": Run(
        ("sqa sweep waiting.yaml k=3,6,9 guesser=bm25,gru --scheduler local:4",)
    ),
    "sqa view RUN [RUN...] --output page.html": Run((f"sqa view {RUNS} --output page.html",)),
    "sqa latency - --json": Run(stdin='{"source_length": 6, "reference_length": 6, "delays": [3, 4, 5, 6, 6, 6]}\n'),
    "sqa train smt CONFIG": Run(("sqa train smt fr_en.yaml",)),
    "sqa train guesser CONFIG": GUESSER,
    "sqa train guesser guesser.yaml": GUESSER,
    # ---------------------------------------------------------------------------------------- other programs
    "sqa scorer bleu": Run(stdin=SCORED),
    "sqa scorer chrf": Run(stdin=SCORED[:30]),
    "sqa scorer ter": Run(stdin=SCORED[:30]),
    "sqa scorer meteor": METEOR,
    "sqa scorer meteor -l en -norm": METEOR,
    "sqa validate sqa SUBMISSION": Run(("sqa validate sqa submission.jsonl --questions mini-es",)),
    "sqa validate vist SUBMISSION": Run(("sqa validate vist -testFile F -gsFile G --template T",)),
    "sqa serve iwslt": Serve(f"{IWSLT} mine"),
    "sqa serve iwslt --tokenizer 13a --src-file src.es --tgt-file tgt.en --output out": Serve(
        f"{IWSLT} mine --tokenizer 13a"
    ),
    f"{IWSLT} out --name eval.example.org --token-file organiser.txt --participants people.txt": Serve(
        f"{IWSLT} others --name eval.example.org --token-file organiser.txt --participants people.txt",
        host="eval.example.org",
    ),
    "sqa serve iwslt --questions mini-es": Serve(),
    "sqa client iwslt": Serve(f"{IWSLT} mine", (f"sqa client iwslt --url {{url}} {WAITK}",)),
    "sqa client iwslt --translator {name: waitk, model: es-en, k: 3} --reset-server --scores": Serve(
        f"{IWSLT} mine", (f"sqa client iwslt --url {{url}} {WAITK} --reset-server --scores",)
    ),
    "sqa client iwslt --translator {name: waitk, model: es-en, k: 6} --end-idx 19 --reset-server --scores": Serve(
        "sqa serve iwslt --questions mini-es",
        (f"sqa client iwslt --url {{url}} {WAITK} --end-idx 0 --reset-server --scores",),
    ),
    "sqa client iwslt --agent my.py:MyAgent -- --k 3": Serve(
        f"{IWSLT} mine", ("sqa client iwslt --url {url} --agent my.py:MyAgent -- --k 3",)
    ),
    "sqa client iwslt --url https://eval.example.org --token-file theirs.txt --agent my.py:MyAgent --scores": Serve(
        f"{IWSLT} theirs --token-file organiser.txt --participants people.txt",
        ("sqa client iwslt --url {url} --token-file theirs.txt --agent my.py:MyAgent --scores",),
    ),
    # -------------------------------------------------------------------------------------- the board
    "sqa board register-model sqa-es theirs submission.jsonl": Run(after=REGISTERED),
    "sqa board serve": Serve("sqa board serve", ("GET /", "GET /api/status")),
    "sqa board work": work("few"),
    "sqa board leaderboard sqa-es": Run(after=REGISTERED),
    "sqa board --metric answered.py:build leaderboard sqa-es --weights ew=4,answered.py:build=1": Run(after=REGISTERED),
    "sqa board perturb sqa-es mini typos --preview": Run(after=REGISTERED),
    "sqa board perturb sqa-es mini typos": Run(
        (
            "sqa board --board later register-dataset sqa-es mini few.jsonl",
            "sqa board --board later perturb sqa-es mini typos",
        )
    ),
    "sqa board leaderboard sqa-es --dataset mini --weights ew=4,dal=1": Run(after=REGISTERED),
    f"{SERVE_BOARD} --token-file organiser.txt --submit-token-file theirs.txt": Serve(
        "sqa board serve --host 0.0.0.0 --name board.example.org --token-file organiser.txt"
        " --submit-token-file theirs.txt",
        ("GET /", "GET /api/tasks"),
        "board.example.org",
    ),
    "sqa board --board DIR": Run(("sqa board --board DIR leaderboard sqa-es",)),
    "sqa board --task module:function": Run(("sqa board --board toys --task board_task:make leaderboard toy",)),
    "sqa board examples sqa-es robustness-mini": Run(after=REGISTERED),
    # --------------------------------------------------------------------------------------------------- modules
    "python -m guessers.evaluate rerank bm25 tfidf bert gru": Run(
        ("python -m guessers.evaluate rerank bm25 tfidf bert gru --datasets mini-es",)
    ),
    "python -m guessers.paired rerank tfidf": Run(
        ("python -m guessers.paired rerank tfidf --datasets mini-es --complete",)
    ),
}


def recipe_of(key: str) -> Run | Serve | Cannot:
    """Return the recipe of a command; by default, run the command as shown."""
    return next((each for each in CANNOT if re.fullmatch(each.commands, key)), RECIPES.get(key, Run()))


def needs(key: str) -> list[str]:
    """Return the packages and programs that a command needs."""
    return [name for commands, names in NEEDS if re.fullmatch(commands, key) for name in names]
