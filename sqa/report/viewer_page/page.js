"use strict";
// The page and its controls.  Texts of the data are set as textContent, never as HTML.

const page = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const NONE = "-"; // no second system
const PACE = 220; // ms per word when playing
const state = { question: 0, runs: [0, page.runs.length > 1 ? 1 : null], place: 0, axis: "chars", answer: false };
let shown = null; // the shown question: { question, source, words: [span], moments, systems: [{...played, run, box, ...}] }
let playing = null;
let linking = null;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Fill a box with a span per word, separated by spaces, and return the spans. */
function spell(box, words, language) {
  box.textContent = "";
  if (language) box.lang = language;
  return words.map((word) => {
    const span = element("span", word);
    box.append(span, " ");
    return span;
  });
}

/** Set a class only if it changes, because most words keep theirs from one moment to the next. */
function setClass(span, name) {
  if (span.className !== name) span.className = name;
}

const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");
const rankText = (rank) => (rank ? `rank ${rank}` : `not among the first ${page.top}`);

// ------------------------------------------------------------------------------------------------------- a question

/** Lay out the chosen question for the chosen systems, then show the moment. */
function open(moment) {
  if (shown) for (const system of shown.systems) for (const drawn of system.charts) drawn.destroy();
  const question = page.questions[state.question];
  const source = sourceOf(question);
  const systems = state.runs.filter((run) => run !== null).map((run) => ({
    ...played(page.runs[run].traces[state.question], source.words.length), run: page.runs[run],
  }));
  shown = { question, source, systems, moments: allMoments(systems, source.words.length) };
  shown.words = spell(by("source"), source.words, question.language);
  by("source").append(element("span", "", "answer"));
  shown.lost = lostIn(systems, source.words.length);
  by("reference").textContent = question.reference;
  by("systems").textContent = "";
  for (const system of systems) layOut(system);
  layOutOmitted();
  by("moment").max = shown.moments.length - 1;
  by("question").value = String(state.question);
  by("left").value = String(state.runs[0]);
  by("right").value = state.runs[1] === null ? NONE : String(state.runs[1]);
  const from = typeof moment === "function" ? moment() : moment;
  state.place = placeOf(shown.moments, from || firstWritten());
  render();
}

/** Return the moment at which the first word of any system is shown, or the start if no system writes. */
function firstWritten() {
  const moments = shown.systems.filter((system) => system.words.length).map((system) => momentOf(system, 0));
  return moments.sort((a, b) => a[0] - b[0] || a[1] - b[1])[0] || [0, 0];
}

/** Explain how source words that a system left out are marked. */
function layOutOmitted() {
  const where = ["dashed line below", "dashed line above"];
  const parts = shown.systems.map((system, i) => (system.trace.o || []).length ? `${where[i]}: left out by ${system.run.name}` : "");
  by("omitted").textContent = parts.filter(Boolean).join("; ");
  by("omitted").hidden = !by("omitted").textContent;
}

function layOut(system) {
  const box = by("system").content.firstElementChild.cloneNode(true);
  const one = (selector) => box.querySelector(selector);
  const { run, trace } = system;
  box.setAttribute("aria-label", `System ${run.name}`);
  one(".name").textContent = run.name;
  one(".parts").textContent = Object.entries(run.parts).map(([part, what]) => `${part}: ${what}`).join(" · ");
  for (const note of run.notes) one(".notes").append(element("li", note));
  system.box = box;
  system.spans = spell(one(".translation"), system.words);
  system.marks = system.words.map((_, step) => ({ 1: "loose", 2: "bad" })[trace.u?.[step]] || "");
  one(".key").hidden = !run.aligned;
  by("systems").append(box);
  layOutGuesses(system, one(".guesses"));
  system.buzzLine = one(".buzz");
  system.captions = { rank: one(".rank figcaption"), wins: one(".wins figcaption") };
  one(".rank").hidden = one(".wins").hidden = !run.guessed;
  draw(system);
  one(".facts").textContent = trace.k ?? "";
  one(".worst").hidden = one(".findings").hidden = !run.aligned;
  for (const finding of trace.f || []) one(".findings").append(findingItem(system, finding));
  if (run.aligned && !trace.f.length) one(".findings").replaceWith(element("p", "None found.", "parts"));
}

/** Create the rows of the guesses; bars go from the question's lowest score, or 0 if that is lower, to its highest. */
function layOutGuesses(system, table) {
  system.rows = [];
  if (!system.run.guessed) return table.replaceWith(element("p", "No guesser ran.", "parts"));
  const scores = system.trace.g.flatMap((row) => row.filter((_, i) => i % 2));
  const low = Math.min(0, ...scores), high = Math.max(...scores, low + 1e-9);
  table.setAttribute("aria-label", `Best guesses of ${system.run.name}, bars from score ${low} to ${high}`);
  const most = Math.max(0, ...system.trace.g.map((row) => row.length / 2));
  for (let i = 0; i < most; i++) {
    const row = element("tr"), title = element("td"), bar = element("td"), score = element("td");
    const meter = element("meter");
    Object.assign(meter, { min: low, max: high });
    bar.append(meter);
    row.append(title, bar, score);
    table.tBodies[0].append(row);
    system.rows.push({ row, title, meter, score });
  }
}

function draw(system) {
  system.charts = [];
  if (!system.run.guessed) return;
  const { source } = shown;
  const toSource = (x) => {
    if (state.axis === "words") return goTo([Math.min(Math.max(Math.round(x), 0), source.words.length), Infinity]);
    let w = 0;
    while (w < source.words.length && source.fraction[w + 1] <= x) w += 1;
    goTo([w, Infinity]);
  };
  const toStep = (x) => system.words[Math.round(x) - 1] !== undefined && goTo(momentOf(system, Math.round(x) - 1));
  const plot = (name) => system.box.querySelector(`${name} .plot`);
  const right = system.trace.z !== undefined && system.trace.z !== null && system.trace.r[system.trace.z] === 1;
  const verdict = state.answer ? (right ? "right" : "bad") : "buzz";
  system.charts = [
    rankChart(plot(".rank"), system, source, state.axis, page, state.axis === "written" ? toStep : toSource),
    winsChart(plot(".wins"), system, source, state.axis, page, verdict, toSource),
  ];
  const bad = Array.from(system.trace.u || "").filter((mark) => mark !== "0").length;
  const marks = system.run.aligned ? `${bad} of ${system.words.length} words wrong or unaligned` : "unaligned words not marked";
  plot(".rank").setAttribute("role", "img");
  plot(".rank").setAttribute("aria-label", `Log reciprocal rank of the answer over ${AXES[state.axis].name}; ${marks}`);
  plot(".wins").setAttribute("role", "img");
  plot(".wins").setAttribute("aria-label", `Human expected-wins curve (${page.curve.name}) and buzzer score${
    system.run.threshold === null ? "" : `, threshold ${number(system.run.threshold, 3)}`}; ${buzzed(system)}`);
}

function findingItem(system, finding) {
  const what = [finding.words, finding.source && `(${finding.source})`].filter(Boolean).join(" ");
  const place = (rank) => (rank === null ? `>${page.top}` : String(rank));
  const ranks = system.run.guessed ? ` · rank ${place(finding.before)} → ${place(finding.after)}` : "";
  const sure = finding.probability === null ? "" : ` (probability ${finding.probability.toFixed(2)})`;
  const item = element("li"), button = element("button", `${finding.kind}${sure}: ${what}${ranks}`);
  button.type = "button";
  button.title = `severity ${finding.severity}; go there`;
  button.addEventListener("click", () => goTo(finding.last < 0 ? [0, 0] : momentOf(system, finding.last)));
  item.append(button);
  return item;
}

/** Describe the first buzz, and its expected wins if the answer is shown. */
function buzzed(system) {
  const { trace, run } = system;
  if (!run.buzzed) return "no buzzer ran";
  if (trace.z === null) return "the buzzer never answers";
  const share = shown.source.fraction[system.read[trace.z]];
  const right = trace.r[trace.z] === 1;
  const wins = right ? `right, expected wins ${number(curveAt(page.curve, share))}` : "wrong, expected wins 0";
  const buzz = `first buzz at ${Math.round(100 * share)}% of the source`;
  return state.answer ? `${buzz}: ${wins}` : buzz;
}

// --------------------------------------------------------------------------------------------------------- a moment

function render() {
  const moment = shown.moments[state.place], { source } = shown, w = moment[0];
  const linked = new Set();
  for (const system of shown.systems) {
    renderSystem(system, stepsAt(system, moment), source.fraction[w]);
    for (const i of (system.trace.l || [])[stepsAt(system, moment) - 1] || []) linked.add(i);
  }
  shown.words.forEach((span, i) => {
    const lost = i < w ? shown.lost[i] : "";
    setClass(span, `${i < w ? "read" : "unread"} ${i === w - 1 ? "edge" : ""} ${i < w && linked.has(i) ? "linked" : ""} ${lost}`);
  });
  by("source").lastElementChild.textContent = state.answer ? `→ ${shown.question.answer}` : "→ ?";
  const written = shown.systems.map((system) => stepsAt(system, moment)).join(" and ");
  by("clock").textContent = `${w} of ${source.words.length} words read, ${written} written`;
  by("moment").value = String(state.place);
  by("moment").setAttribute("aria-valuetext", by("clock").textContent);
  clearTimeout(linking); // browsers refuse addresses that change too often
  linking = setTimeout(writeHash, 150);
}

function renderSystem(system, steps, share) {
  const { trace, run } = system, step = steps - 1;
  system.spans.forEach((span, i) => {
    setClass(span, `${system.marks[i]} ${i >= steps ? "later" : i === step ? "now" : ""}`); // later: keeps its place
    span.hidden = system.gone[i] < steps;
  });
  system.box.querySelector(".translation").classList.toggle("blank", steps === 0);
  if (!run.guessed) return;
  const row = steps ? trace.g[step] : [];
  system.rows.forEach((cells, i) => {
    const there = 2 * i < row.length;
    const right = there && state.answer && trace.r[step] === i + 1;
    cells.row.className = right ? "right" : "";
    cells.title.textContent = there ? (right ? "✓ " : "") + page.pages[row[2 * i]] : !steps && i === 0 ? "no guess yet" : "";
    cells.title.title = there ? page.pages[row[2 * i]] : "";
    cells.meter.hidden = !there;
    if (there) {
      cells.meter.value = row[2 * i + 1];
      cells.meter.setAttribute("aria-label", `score of ${page.pages[row[2 * i]]}`);
    }
    cells.score.textContent = there ? number(row[2 * i + 1]) : "";
  });
  const score = steps && run.buzzed ? `buzzer score ${number(trace.b[step], 3)}` : run.buzzed ? "nothing written yet" : "no buzzer ran";
  const after = run.buzzed && trace.z !== null && steps > trace.z ? ", has buzzed" : "";
  system.buzzLine.textContent = score + after;
  const log = steps ? logRank(trace.r[step], page.floor) : page.floor;
  system.captions.rank.textContent = steps ? `Answer: ${rankText(trace.r[step])}, log reciprocal rank ${number(log)}` : "Answer: no guess yet";
  system.captions.wins.textContent = `A right answer here wins ${number(curveAt(page.curve, share))}; ${buzzed(system)}`;
  const place = onSource(shown.source, state.axis).at(shown.moments[state.place][0]);
  system.charts[0].move(state.axis === "written" ? steps || null : place);
  system.charts[1].move(place);
}

function goTo(moment) {
  state.place = placeOf(shown.moments, moment);
  render();
}

function stepBy(count) {
  state.place = Math.min(Math.max(state.place + count, 0), shown.moments.length - 1);
  render();
}

/** Go to the end of the next sentence, or of the previous one. */
function sentenceBy(direction) {
  const w = shown.moments[state.place][0], ends = [0, ...shown.source.ends];
  const target = direction > 0 ? ends.find((end) => end > w) : ends.findLast((end) => end < w);
  if (target !== undefined) goTo([target, target ? Infinity : 0]);
  else if (direction > 0) stepBy(Infinity);
}

function questionBy(count) {
  const next = state.question + count;
  if (next < 0 || next >= page.questions.length) return;
  state.question = next;
  open(firstWritten);
}

function play(on) {
  clearInterval(playing);
  playing = null;
  if (on) {
    if (state.place === shown.moments.length - 1) state.place = 0;
    playing = setInterval(() => (state.place === shown.moments.length - 1 ? play(false) : stepBy(1)), PACE);
  }
  by("play").textContent = on ? "⏸" : "▶";
  by("play").setAttribute("aria-label", on ? "Pause" : "Play");
}

// ------------------------------------------------------------------------------------------------ answer, axis, colours

function isDark() {
  return (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}

/** Set the theme (undefined: keep it) and draw the charts in its colours. */
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  by("theme").setAttribute("aria-pressed", String(isDark()));
  redraw();
}

function redraw() {
  if (!shown) return;
  for (const system of shown.systems) {
    for (const drawn of system.charts) drawn.destroy();
    draw(system);
  }
  render();
}

function setAxis(axis) {
  state.axis = axis;
  by("axis").value = axis;
  redraw();
}

/** Update the axis menu, the answer button and the question menu, which names answers only while they are shown. */
function nameAnswers() {
  by("axis").value = state.axis;
  by("ask").setAttribute("aria-pressed", String(state.answer));
  by("ask").textContent = state.answer ? "Hide answer" : "Show answer";
  page.questions.forEach((question, i) => {
    by("question").options[i].text = state.answer ? `${i + 1}. ${question.answer} (${question.id})` : `${i + 1}. ${question.id}`;
  });
}

function askAnswer() {
  state.answer = !state.answer;
  nameAnswers();
  redraw();
}

/** Outline aligned words while the pointer is on one of them. */
function point(event) {
  for (const span of document.querySelectorAll(".pointed")) span.classList.remove("pointed");
  const span = event.target;
  const source = shown.words.indexOf(span);
  for (const system of shown.systems) {
    const links = system.trace.l || [];
    const step = system.spans.indexOf(span);
    const pairs = links.flatMap((sources, target) => sources.map((at) => [at, target]));
    for (const [at, target] of pairs.filter(([at, target]) => at === source || target === step)) {
      shown.words[at].classList.add("pointed");
      system.spans[target].classList.add("pointed");
    }
  }
}

// -------------------------------------------------------------------------------------------------------- the controls

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inMenu = event.target.tagName === "SELECT";
  const onButton = event.target.closest("button, summary, a");
  const keys = {
    ArrowLeft: () => (event.shiftKey ? sentenceBy(-1) : stepBy(-1)),
    ArrowRight: () => (event.shiftKey ? sentenceBy(1) : stepBy(1)),
    Home: () => stepBy(-Infinity),
    End: () => stepBy(Infinity),
    ArrowUp: () => questionBy(-1),
    ArrowDown: () => questionBy(1),
    " ": () => play(playing === null),
    a: askAnswer,
    x: () => setAxis(Object.keys(AXES)[(Object.keys(AXES).indexOf(state.axis) + 1) % Object.keys(AXES).length]),
    d: () => setTheme(isDark() ? "light" : "dark"),
  };
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act || inMenu || (event.key === " " && onButton)) return; // menus and buttons keep their own keys
  event.preventDefault();
  act();
}

function start() {
  page.questions.forEach((_, i) => by("question").append(new Option("", i)));
  for (const [axis, { name }] of Object.entries(AXES)) by("axis").append(new Option(name, axis));
  page.runs.forEach((run, i) => {
    by("left").append(new Option(run.name, i));
    by("right").append(new Option(run.name, i));
  });
  by("right").append(new Option("none", NONE));
  by("about").textContent = `sqa ${page.sqa}; human curve: ${page.curve.name} (${page.curve.source}); ` +
    `log reciprocal rank is ${page.floor} where the answer is not among the first ${page.top} guesses.`;
  by("question").addEventListener("change", (event) => { state.question = Number(event.target.value); open(firstWritten); });
  const choose = (side) => (event) => {
    state.runs[side] = event.target.value === NONE ? null : Number(event.target.value);
    open(shown.moments[state.place]);
  };
  by("left").addEventListener("change", choose(0));
  by("right").addEventListener("change", choose(1));
  by("previous").addEventListener("click", () => questionBy(-1));
  by("next").addEventListener("click", () => questionBy(1));
  by("moment").addEventListener("input", (event) => { state.place = Number(event.target.value); render(); });
  by("play").addEventListener("click", () => play(playing === null));
  by("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  by("ask").addEventListener("click", askAnswer);
  by("axis").addEventListener("change", (event) => setAxis(event.target.value));
  document.querySelector("main").addEventListener("pointerover", point);
  document.addEventListener("keydown", onKey);
  // the event's address is used, because a late writeHash may have restored the old one
  addEventListener("hashchange", (event) => readHash(new URL(event.newURL).hash));
  addEventListener("resize", () => { for (const system of shown.systems) for (const drawn of system.charts) drawn.resize(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme());
  readHash(location.hash);
  setTheme();
}

start();
