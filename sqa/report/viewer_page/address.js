"use strict";
// The address of a moment: written after every move, read when the page opens and when the address changes.

function writeHash() {
  const [w, j] = shown.moments[state.place];
  const names = state.runs.map((run) => (run === null ? NONE : page.runs[run].name));
  const hash = "#" + new URLSearchParams({ q: shown.question.id, m: `${w}.${j}`, a: names[0], b: names[1],
    ...(state.axis === "chars" ? {} : { x: state.axis }), ...(state.answer ? { s: "1" } : {}) });
  by("link").href = hash;
  const framed = location.protocol === "about:"; // inside a notebook, where the page has no address of its own
  if (!framed && location.hash !== hash) history.replaceState(null, "", hash);
}

/** Show the state in an address: q question, m moment "w.j", step of the first system, a and b systems, x axis, s answer. */
function readHash(hash) {
  const asked = new URLSearchParams(hash.slice(1));
  const problems = [];
  const find = (key, names, otherwise) => {
    if (!asked.has(key)) return otherwise;
    const place = names.indexOf(asked.get(key));
    if (place < 0) problems.push(`this page has no “${asked.get(key)}”`);
    return place < 0 ? otherwise : place;
  };
  const names = page.runs.map((run) => run.name);
  state.question = find("q", page.questions.map((question) => question.id), state.question);
  state.runs[0] = find("a", names, state.runs[0]);
  state.runs[1] = asked.get("b") === NONE ? null : find("b", names, state.runs[1]);
  const axes = Object.keys(AXES);
  state.axis = axes[find("x", axes, 0)];
  state.answer = asked.get("s") === "1";
  const moment = /^(\d+)\.(\d+)$/.exec(asked.get("m") || "");
  const step = /^\d+$/.exec(asked.get("step") || "");
  nameAnswers();
  open(() => {
    const first = shown.systems[0];
    if (moment) return [Number(moment[1]), Number(moment[2])];
    if (step && first.words.length) return momentOf(first, Math.min(Number(step[0]), first.words.length - 1));
    return null;
  });
  by("problem").hidden = !problems.length;
  by("problem").textContent = problems.length ? `The address cannot be followed: ${problems.join("; ")}.` : "";
}
