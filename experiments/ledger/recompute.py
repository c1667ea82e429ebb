"""Recompute the headline table from the values of individual questions; needs numpy and this folder only.

    python experiments/ledger/recompute.py

A value is the probability of beating the average player when answering at that point, and 0 without a right answer.
Expected wins is its mean over questions.  The last column is the largest difference from text-at-pace.tsv beyond
rounding.
"""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
rng = np.random.default_rng(1)
stored = np.load(HERE / "values" / "text-at-pace.npz", allow_pickle=False)
ew = {tuple(name.split("\t")[:4]): stored[name][:, 0] / stored[name][:, 1] for name in stored.files}
lines = [line for line in (HERE / "text-at-pace.tsv").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
ledger = {tuple(row[:5]): float(row[5]) for row in list(csv.reader(lines, delimiter="\t"))[1:]}
ks = ["2", "6", "full"]
print("data set  translator    k     own    full   human  pace    text    95% interval      off by")
for dataset, translator in sorted({key[:2] for key in ew if key[1] != "human"}):
    for k in ks:
        own, full = ew[dataset, translator, k, k], ew[dataset, translator, "full", k]
        human, late = ew[dataset, "human", "full", k], ew[dataset, translator, "full", "full"]
        parts = {"own text": own, "full-input text": full, "human text": human, "pace": full - late, "text": own - full}
        means = {part: values.mean() for part, values in parts.items()}
        drawn = rng.integers(len(own), size=(2000, len(own)))
        low, high = np.percentile(parts["text"][drawn].mean(axis=1), [2.5, 97.5])
        off = max(abs(means[part] - ledger[dataset, translator, k, part, "ew"]) for part in parts)
        shown = "  ".join(f"{means[part]:+.3f}" if part in ("pace", "text") else f"{means[part]:.3f}" for part in parts)
        print(f"{dataset}    {translator:12}  {k:4}  {shown}  [{low:+.3f}, {high:+.3f}]  {off:.6f}")
    texts = np.array([[ew[dataset, translator, text, pace] for pace in ks] for text in ks])  # (texts, paces, n)

    def largest(table):
        return max(abs(table[i, i].mean() - table[-1, i].mean()) for i in range(len(ks)))

    moved = (rng.permuted(np.tile(np.arange(len(ks)), (texts.shape[2], 1)), axis=1).T for _ in range(5000))
    null = [largest(np.take_along_axis(texts, order[:, None, :], axis=0)) for order in moved]
    p = (1 + sum(value >= largest(texts) - 1e-12 for value in null)) / 5001
    stored_p = ledger[dataset, translator, "from 2", "text", "p"]
    print(f"{dataset}    {translator:12}  p = {p:.4f}, in the ledger {stored_p:.4f}")
