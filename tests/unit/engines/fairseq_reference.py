"""Reference outputs of fairseq for tiny models: `python fairseq_reference.py FOLDER`, with a Python that has fairseq.

FOLDER contains train.es and train.en, segmented into pieces. For each entry of VARIANTS, the script trains a model in
FOLDER/NAME with fairseq-preprocess and fairseq-train. It then writes FOLDER/NAME/reference.pt with the source ids, the
greedy output and its logits for the first lines of train.es. The script does not import the project.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

LINES = 12
K = 2
COMMON = """--cpu --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 --decoder-ffn-embed-dim 64
  --encoder-layers 2 --decoder-layers 2 --encoder-attention-heads 4 --decoder-attention-heads 4 --dropout 0
  --optimizer adam --lr 0.004 --lr-scheduler fixed --max-update 300 --max-tokens 600 --required-batch-size-multiple 1
  --num-workers 0 --seed 1 --no-epoch-checkpoints --disable-validation --criterion cross_entropy --log-format none
  --log-interval 1000000"""
VARIANTS = {  # name -> (options of fairseq-preprocess, options of fairseq-train)
    "post": ("", "--arch transformer_iwslt_de_en"),
    "pre": (
        "--joined-dictionary",
        """--arch transformer --share-all-embeddings --encoder-normalize-before --decoder-normalize-before
           --encoder-learned-pos --decoder-learned-pos --activation-fn gelu""",
    ),
    "waitk": (
        "",
        f"""--arch transformer_monotonic --share-decoder-input-output-embed --simul-type waitk --waitk-lagging {K}
            --mass-preservation --attention-eps 1e-12 --left-pad-source""",
    ),
}


def main(folder: Path) -> None:
    """Train all variants and write their reference outputs."""
    import fairseq

    # fairseq's examples import each other as `examples...`. The package's folder must not be on the path, because it
    # has a module called logging. With --user-dir, fairseq would import the examples twice, which fails.
    (folder / "path").mkdir()
    (folder / "path" / "examples").symlink_to(Path(fairseq.__file__).parent / "examples")
    sys.path.insert(0, str(folder / "path"))
    sys.modules["alignment_train_cpu_binding"] = Alignment("alignment_train_cpu_binding")
    import_module("examples.simultaneous_translation")
    without_simul_type()
    for name, (preparing, training) in VARIANTS.items():
        run("preprocess", f"-s es -t en --trainpref train --destdir {name}/data {preparing}")
        run("train", f"{name}/data --save-dir {name} {COMMON} {training}")
        reference(folder / name)


class Alignment(ModuleType):
    """A replacement for a compiled module of fairseq that crashes with current torch; it computes the same values."""

    def alignment_train_cpu(self, p: object, alpha: object, eps: float) -> None:
        """Write the expected alignment for stopping probabilities `p` (B, T, S) to `alpha` (Raffel 2017, eq. 16)."""
        import torch

        going_on = torch.cat([torch.ones_like(p[..., :1]), 1 - p[..., :-1]], 2).cumprod(2)
        before = torch.zeros_like(p[:, 0])
        before[:, 0] = 1
        for t in range(p.shape[1]):
            before = p[:, t] * going_on[:, t] * (before / going_on[:, t].clamp(eps, 1)).cumsum(1)
            alpha[:, t] = before.clamp(0, 1)


def without_simul_type() -> None:
    """Keep fairseq-train from looking up --simul-type in its structured configuration, which has no such key."""
    from fairseq.registry import REGISTRIES
    from fairseq_cli import train

    configure = train.convert_namespace_to_omegaconf

    def configured(arguments: object) -> object:
        entry = REGISTRIES.pop("simul_type")
        try:
            return configure(arguments)
        finally:
            REGISTRIES["simul_type"] = entry

    train.convert_namespace_to_omegaconf = configured


def run(command: str, options: str) -> None:
    """Run a fairseq program in this process."""
    sys.argv = [f"fairseq-{command}", *options.split()]
    import_module(f"fairseq_cli.{command}").cli_main()


def reference(folder: Path) -> None:
    """Write reference.pt for the trained model in a folder."""
    from argparse import Namespace

    import torch
    from fairseq import checkpoint_utils

    torch.serialization.add_safe_globals([Namespace])  # needed by torch's default of weights_only
    overrides = {"data": str(folder / "data")}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(folder / "checkpoint_last.pt")], overrides)
    model = models[0].eval()
    eos = task.target_dictionary.eos()
    rows = []
    lines = (folder.parent / "train.es").read_text(encoding="utf-8").splitlines()[:LINES]
    for line in lines:
        source = task.source_dictionary.encode_line(line, add_if_not_exist=False).long()[None]
        length = torch.tensor([source.shape[1]])
        output = [eos]
        with torch.no_grad():
            while True:
                logits = model(source, length, torch.tensor([output]))[0][0]  # (T, V)
                best = int(logits[-1].argmax())
                if best == eos or len(output) > 60:
                    break
                output.append(best)
        words = task.target_dictionary.string(torch.tensor(output[1:]), "sentencepiece")
        generated = None
        if folder.name != "waitk":  # the generator cannot run fairseq's wait-k models
            generator = task.build_generator([model], Namespace(beam=1, max_len_b=60))
            sample = {"net_input": {"src_tokens": source, "src_lengths": length}}
            found = task.inference_step(generator, [model], sample)[0][0]["tokens"]
            generated = task.target_dictionary.string(found, "sentencepiece")
        rows.append(
            {"source": source[0], "logits": logits, "output": output[1:], "words": words, "generated": generated}
        )
    torch.save(rows, folder / "reference.pt")


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    os.chdir(where)
    main(where)
