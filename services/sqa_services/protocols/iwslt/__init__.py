"""`sqa serve iwslt`, asked by `sqa client iwslt`: simultaneous translation evaluated over HTTP, as at IWSLT 2020.

    sqa serve iwslt --src-file SRC --tgt-file TGT --output DIR
    sqa serve iwslt --questions xqb-es                  # expected wins too, while it is translated
    sqa client iwslt --translator '{name: waitk, model: es-en, k: 3}' --reset-server --scores

The server reads source sentences out a word (or 10 ms of speech) at a time and notes how much was read when each target
word comes back.  Programs written for the server of the IWSLT 2020 shared task, for its published guide, or for
SimulEval 1.0.2 work unchanged; what differs from the originals on purpose is listed in `session`, and
`--strict-2020` undoes it.
"""
