"""Speed of training the small Transformer, in target pieces per second: float32 on one core, bfloat16 on all cores.

Both use the same batches of random pieces and the model sizes in configs/smt_es_en.yaml, without the lexicon.  Each
runs in a separate process, since a process can set its number of threads only once.
"""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from sqa.core.types import Question
from sqa_services.bench.speed import Pair

STEPS, WARM = 6, 2


def pairs(_: Sequence[Question]) -> Iterator[Pair]:
    """Yield target pieces per second in float32 on one core and in bfloat16 on all cores."""
    cores = len(os.sched_getaffinity(0))
    plain, fast = (measured(*setting) for setting in (("float32", 1), ("bfloat16", cores)))
    yield f"training: float32 on 1 core, bfloat16 on {cores}", "pieces/s", plain, fast


def measured(dtype: str, threads: int) -> float:
    """Return target pieces per second of one setting, in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(pieces_per_second, dtype, threads).result()


def pieces_per_second(dtype: str, threads: int, device: str = "cpu", rows: int = 66) -> float:
    """Return target pieces per second of one setting, in this process; `rows` is the number of sentences per batch."""
    import numpy as np
    import torch

    from smt.models.transformer import ModelConfig, Transformer
    from smt.models.vocab import BOS
    from smt.policies.waitk import FULL, Schedule
    from smt.training.corpus import Batch
    from smt.training.transformer_training import arithmetic, losses
    from sqa.training.trainer import denormals_flushed

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(
            vocabulary=8000, width=256, heads=4, feed_forward=1024, encoder_layers=4, decoder_layers=2, dropout=0.0
        )
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rng = np.random.default_rng(0)
    length = 30
    source, target = (torch.from_numpy(rng.integers(4, 8000, (rows, length))) for _ in range(2))
    words = torch.arange(length).expand(rows, -1)
    inputs = torch.cat([torch.full((rows, 1), BOS), target[:, :-1]], 1)
    batch = Batch(source, words, inputs, target, words, torch.zeros(0, 3, dtype=torch.long)).to(torch.device(device))
    began = 0.0
    with denormals_flushed():
        for step in range(WARM + STEPS):
            if step == WARM:
                began = clock(device)
            with arithmetic(torch.device(device).type, dtype):
                entropy, _, n = losses(model, batch, Schedule(FULL if step % 2 else 3), 0.1)
            (entropy / n).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return STEPS * rows * length / (clock(device) - began)


def clock(device: str) -> float:
    """Wait until a GPU has finished its work, and return the time in seconds."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter()
