"use strict";
// The clock that two systems share.  A moment is [w, j]: w source words were read, and of the words that a system wrote
// right then the first j + 1 are there (its last words come all at once when a sentence has ended).

/** Running sums: [1, 2] -> [1, 3]. */
function sums(differences) {
  let total = 0;
  return differences.map((step) => (total += step));
}

/** What one system did on one question; `length` = source words of the question. */
function played(trace, length) {
  const words = trace.w === null ? [] : trace.w.split(" ");
  const read = sums(trace.s);
  const before = new Array(length + 2).fill(0); // before[w] = steps with fewer than w source words read
  for (const w of read) before[w + 1] += 1;
  for (let w = 1; w < before.length; w++) before[w] += before[w - 1];
  const gone = new Array(words.length).fill(Infinity); // the step that retracts a word
  const seen = [];
  words.forEach((word, step) => {
    for (let k = (trace.e || {})[step] || 0; k > 0; k--) gone[seen.pop()] = step;
    if (word) seen.push(step);
  });
  return { trace, words, read, before, gone };
}

/** Steps a system has made at a moment. */
function stepsAt(system, [w, j]) {
  return Math.min(system.before[w] + j + 1, system.before[w + 1]);
}

/** The moment at which a step (0-based) is there. */
function momentOf(system, step) {
  const w = system.read[step];
  return [w, step - system.before[w]];
}

/** All moments, in order: as many for w source words as the system that writes most words there needs. */
function allMoments(systems, length) {
  const moments = [];
  for (let w = 0; w <= length; w++) {
    const most = Math.max(1, ...systems.map((system) => system.before[w + 1] - system.before[w]));
    for (let j = 0; j < most; j++) moments.push([w, j]);
  }
  return moments;
}

/** The place in `moments` of the last one that is not after [w, j]. */
function placeOf(moments, [w, j]) {
  let low = 0, high = moments.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const [v, i] = moments[middle];
    if (v < w || (v === w && i <= j)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The words of a question's sentences, where sentences end, and the share of characters read with w words. */
function sourceOf(question) {
  const sentences = question.sentences.map((sentence) => sentence.split(" "));
  const words = sentences.flat();
  const ends = sums(sentences.map((sentence) => sentence.length));
  const chars = [0];
  words.forEach((word, i) => chars.push((i ? chars[i] + 1 : 0) + Array.from(word).length));
  return { words, ends, fraction: chars.map((n) => n / chars[words.length]) };
}

/** The class of each source word: "lost0" where the first system left it out, "lost1" where the second did. */
function lostIn(systems, length) {
  const lost = Array.from({ length }, () => []);
  systems.forEach((system, i) => {
    for (const [first, stop] of system.trace.o || []) for (let w = first; w < stop; w++) lost[w].push(`lost${i}`);
  });
  return lost.map((names) => names.join(" "));
}

/** Log of the reciprocal rank; rank 0 = not among the guesses. */
function logRank(rank, floor) {
  return rank ? -Math.log(rank) : floor;
}

/** The curve's value at t, between its two nearest points. */
function curveAt(curve, t) {
  const last = curve.t.length - 1;
  const place = Math.min(Math.floor(t * last), last - 1);
  const part = t * last - place;
  return curve.ew[place] * (1 - part) + curve.ew[place + 1] * part;
}
