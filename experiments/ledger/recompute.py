"""Recompute the headline table and the primary analysis of docs/results.md, and the agreement with people, from values.

The script needs only numpy and this folder.

    python experiments/ledger/recompute.py

A value is the probability of beating the average player when answering at that point, and 0 without a right answer.
Expected wins is its mean over questions.  BLEU is computed from summed counts of n-grams.  The last column is the
largest difference from over-k.tsv, text-at-pace.tsv or people.tsv.
"""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
rng = np.random.default_rng(1)


def read(item):
    """Return the values per question and the numbers in the ledger, both by cell and metric."""
    stored = np.load(HERE / "values" / f"{item}.npz", allow_pickle=False)
    lines = [line for line in (HERE / f"{item}.tsv").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    header, *rows = csv.reader(lines, delimiter="\t")
    at = header.index("value")
    return {tuple(name.split("\t")): stored[name] for name in stored.files}, {(*r[:at],): float(r[at]) for r in rows}


def score(metric, table):
    """Return the score of a metric from its statistics, of shape (n, d)."""
    total = table.sum(axis=0)
    if metric != "bleu":
        return total[0] / total[1]
    length, reference, *counts = total[:10]
    return 100 * np.exp(min(0, 1 - reference / length) + np.mean(np.log(counts[:4]) - np.log(counts[4:])))


values, ledger = read("over-k")
print("data set  translator        k       EW  oracle EW  accuracy  BLEU      off by")
for cell in dict.fromkeys(key[:4] for key in values):
    found = {m: score(m, values[*cell, m]) for m in ("ew", "oracle-ew", "accuracy", "bleu")}
    off = max(abs(found[m] - ledger[*cell, m]) for m in found)
    print(f"{cell[0]}    {cell[1]:16}  {cell[2]:4}", *(f"  {value:6.3f}" for value in found.values()), f"  {off:.6f}")

values, ledger = read("text-at-pace")
ew = {key[:4]: table[:, 0] / table[:, 1] for key, table in values.items()}
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

values, ledger = read("people")
print("pair   errors           measure     tau of systems  off by")
for pair, errors, measure, _ in (key for key in ledger if key[3] == "tau" and key[2] not in ("bleu", "chrf")):
    totals = [[score("", values[k]) for k in values if k[::2] == (pair, side)] for side in (errors, measure)]
    ordered = [np.sign(np.subtract.outer(each, each)) for each in totals]
    tau = (ordered[0] * ordered[1]).sum() / np.sqrt(np.prod([(each != 0).sum() for each in ordered]))
    off = abs(tau - ledger[pair, errors, measure, "tau"])
    print(f"{pair}  {errors:16} {measure:10}  {tau:+.3f}          {off:.6f}")
