"""Evaluation of simultaneous translation over HTTP, as at IWSLT 2020: `sqa serve iwslt` and `sqa client iwslt`.

    sqa serve iwslt --src-file SRC --tgt-file TGT --output DIR
    sqa serve iwslt --questions xqb-es                  # expected wins, too, during the translation
    sqa client iwslt --translator '{name: waitk, model: es-en, k: 3}' --reset-server --scores

The server sends source sentences one word (or 10 ms of speech) at a time and records how much was read when each target
word arrives.  Programs written for the server of the IWSLT 2020 shared task, for its published guide, or for SimulEval
1.0.2 work unchanged.  Deliberate differences from the originals are listed in `session`; `--strict-2020` reverts them.
"""
