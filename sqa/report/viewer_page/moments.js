"use strict";
// The clock that two systems share.  At the moment [w, j], w source words have been read, and the first j + 1 of the words
// that a system wrote after the w-th are shown.  A system may write several words there, such as the rest of a sentence.

/** Return running sums: [1, 2] -> [1, 3]. */
function sums(differences) {
  let total = 0;
  return differences.map((step) => (total += step));
}

/** Return the words and steps of a system on a question of `length` source words. */
function played(trace, length) {
  const words = trace.w === null ? [] : trace.w.split(" ");
  const read = sums(trace.s);
  const before = new Array(length + 2).fill(0); // before[w] = steps with fewer than w source words read
  for (const w of read) before[w + 1] += 1;
  for (let w = 1; w < before.length; w++) before[w] += before[w - 1];
  const gone = new Array(words.length).fill(Infinity); // step that retracts each word
  const seen = [];
  words.forEach((word, step) => {
    for (let k = (trace.e || {})[step] || 0; k > 0; k--) gone[seen.pop()] = step;
    if (word) seen.push(step);
  });
  return { trace, words, read, before, gone };
}

/** Return the number of steps of a system up to a moment. */
function stepsAt(system, [w, j]) {
  return Math.min(system.before[w] + j + 1, system.before[w + 1]);
}

/** Return the moment at which a step (0-based) is shown first. */
function momentOf(system, step) {
  const w = system.read[step];
  return [w, step - system.before[w]];
}

/** Return all moments in order: after each w source words, one per word of the system that writes most there. */
function allMoments(systems, length) {
  const moments = [];
  for (let w = 0; w <= length; w++) {
    const most = Math.max(1, ...systems.map((system) => system.before[w + 1] - system.before[w]));
    for (let j = 0; j < most; j++) moments.push([w, j]);
  }
  return moments;
}

/** Return the index in `moments` of the last moment that is not after [w, j]. */
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

/** Return the words of a question, the ends of its sentences, and the share of characters read after w words. */
function sourceOf(question) {
  const sentences = question.sentences.map((sentence) => sentence.split(" "));
  const words = sentences.flat();
  const ends = sums(sentences.map((sentence) => sentence.length));
  const chars = [0];
  words.forEach((word, i) => chars.push((i ? chars[i] + 1 : 0) + Array.from(word).length));
  return { words, ends, fraction: chars.map((n) => n / chars[words.length]) };
}

/** Return the classes of each source word: "lost0" if the first system left it out, "lost1" if the second did. */
function lostIn(systems, length) {
  const lost = Array.from({ length }, () => []);
  systems.forEach((system, i) => {
    for (const [first, stop] of system.trace.o || []) for (let w = first; w < stop; w++) lost[w].push(`lost${i}`);
  });
  return lost.map((names) => names.join(" "));
}

/** Return the log of the reciprocal rank; rank 0 = not among the guesses. */
function logRank(rank, floor) {
  return rank ? -Math.log(rank) : floor;
}

/** Return the curve's value at t, interpolated between the two nearest points. */
function curveAt(curve, t) {
  const last = curve.t.length - 1;
  const place = Math.min(Math.floor(t * last), last - 1);
  const part = t * last - place;
  return curve.ew[place] * (1 - part) + curve.ew[place + 1] * part;
}
