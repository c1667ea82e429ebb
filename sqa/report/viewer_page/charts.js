"use strict";
// The two charts of a system, drawn by uPlot.

const HEIGHT = 200; // the label "log reciprocal rank (nats)" fits beside the plot

/** Return a colour of the page's style, by name. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function axis(label, more) {
  return {
    label, labelSize: 18, labelFont: "12px sans-serif", font: "11px sans-serif", stroke: colour("faint"),
    grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), size: 4 }, ...more,
  };
}

function dots(label, stroke, fill, size, scale = "y") {
  return { label, scale, stroke, paths: () => null, points: { show: true, size, width: 1.5, stroke, fill } };
}

/** Draw a chart in `box` with a line at the current moment; a click calls `pick(x)` with its position. */
function chart(box, options, data, pick) {
  box.textContent = "";
  let drawn = null;
  const plot = new uPlot({
    width: Math.max(box.clientWidth, 200), height: HEIGHT, legend: { show: false },
    hooks: { draw: [() => drawn.settle()] }, // positions are known only when uPlot has drawn, after this script
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false, click: () => {} } }, ...options,
  }, data, box);
  const here = document.createElement("div");
  here.className = "here";
  plot.over.append(here);
  plot.over.addEventListener("click", (event) => pick(plot.posToVal(event.offsetX, "x")));
  let last = null;
  drawn = {
    plot,
    placed: [], // functions that position the labels
    move(x) {
      last = x;
      here.hidden = x === null;
      if (x !== null && plot.scales.x.min !== null) here.style.transform = `translateX(${plot.valToPos(x, "x") - 1}px)`;
    },
    settle() {
      this.move(last);
      for (const place of this.placed) place();
    },
    resize() { plot.setSize({ width: Math.max(box.clientWidth, 200), height: HEIGHT }); },
    destroy() { plot.destroy(); },
  };
  return drawn;
}

/** Add the name of a line at x, y of a chart, in the line's colour. */
function tag(drawn, text, x, y, colourName, scale = "y") {
  const label = document.createElement("span");
  label.className = "tag";
  label.textContent = text;
  label.style.color = `var(--${colourName})`;
  drawn.placed.push(() => {
    label.style.left = `${drawn.plot.valToPos(x, "x") + 4}px`;
    label.style.top = `${drawn.plot.valToPos(y, scale) - 18}px`;
  });
  drawn.plot.over.append(label);
}

// The axes of both charts: the source, which two systems share, or the words that a system wrote.
const AXES = {
  chars: { name: "source characters", label: "share of the source read (characters)" },
  words: { name: "source words", label: "source words read" },
  written: { name: "words written", label: "word of the translation" },
};

/** Return a function `at` from a number of source words to its position on an axis, and the end of the axis. */
function onSource(source, axis) {
  return axis === "words" ? { at: (w) => w, end: source.words.length } : { at: (w) => source.fraction[w], end: 1 };
}

/** Return the scale of an axis of the source.  uPlot draws the points nearest to the ends, so the data go beyond them. */
function sourceScale(end) {
  return { time: false, range: [-0.005 * end, 1.005 * end] };
}

/** Draw the log reciprocal rank of the answer after each word, with unaligned words marked. */
function rankChart(box, system, source, over, page, pick) {
  const { trace } = system, written = over === "written", { at, end } = onSource(source, over);
  const logs = trace.r.map((rank) => logRank(rank, page.floor));
  const marked = (mark) => logs.map((y, step) => (trace.u && trace.u[step] === mark ? y : null));
  const columns = [written ? logs.map((_, step) => step + 1) : system.read.map(at), logs, marked("1"), marked("2")];
  if (!written) { // there is no rank before the first word, and the last rank holds to the end
    columns[0] = [-0.02 * end, ...columns[0], end, 1.02 * end];
    columns[1] = [null, ...logs, logs.at(-1) ?? null, null];
    for (const i of [2, 3]) columns[i] = [null, ...columns[i], null, null];
  }
  const x = written ? { time: false, range: [0.5, Math.max(logs.length, 1) + 0.5] } : sourceScale(end);
  const whole = over === "chars" ? {} : { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] };
  return chart(box, {
    scales: { x, y: { range: [page.floor - 0.3, 0.3] } },
    axes: [
      axis(AXES[over].label, { size: 30, ...whole }),
      axis("log reciprocal rank (nats)", { size: 48, splits: () => [0, -1, -2, -3, -4].filter((y) => y >= page.floor) }),
    ],
    series: [
      {},
      { label: "log reciprocal rank", stroke: colour("rank"), width: 1.8, points: { show: false },
        ...(written ? {} : { paths: uPlot.paths.stepped({ align: 1 }) }) },
      dots("unaligned function word", colour("bad"), colour("panel"), 5),
      dots("probably wrong word", colour("bad"), colour("bad"), 8),
    ],
  }, columns, pick);
}

/** Draw the human expected-wins curve and the buzzer's score over the source, with a horizontal line at its threshold. */
function winsChart(box, system, source, over, page, verdict, pick) {
  const { trace } = system, { at, end } = onSource(source, over);
  const scores = trace.b || [], threshold = system.run.threshold;
  const rows = over === "words"
    ? source.fraction.map((t, w) => [w, curveAt(page.curve, t), null, null, null])
    : page.curve.t.map((t, i) => [t, page.curve.ew[i], null, null, null]);
  system.read.forEach((w, step) => {
    const wins = curveAt(page.curve, source.fraction[w]);
    rows.push([at(w), wins, step < scores.length ? scores[step] : null, step === trace.z ? wins : null, null]);
  });
  rows.push([end, curveAt(page.curve, 1), scores.at(-1) ?? null, null, null]); // the last score holds to the end
  rows.push([-0.02 * end, null, null, null, threshold], [1.02 * end, null, null, null, threshold]);
  rows.sort((a, b) => a[0] - b[0]); // a stable sort: steps at one place stay in order
  const all = threshold === null ? scores : [...scores, threshold];
  const own = all.some((score) => score < 0 || score > 1); // scores outside 0..1 have their own axis
  const span = own ? [Math.min(...all), Math.max(...all)] : [0, 1];
  const scale = own ? "score" : "y";
  const whole = over === "words" ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] } : {};
  const axes = [
    axis(AXES[over === "words" ? "words" : "chars"].label, { size: 30, ...whole }),
    axis(own ? "expected wins" : "expected wins, score", { size: 48 }),
  ];
  if (own) axes.push(axis("buzzer score", { scale, side: 1, size: 48, grid: { show: false } }));
  const drawn = chart(box, {
    scales: { x: sourceScale(end), y: { range: [0, 1.05] }, ...(own ? { score: { range: span } } : {}) },
    axes,
    series: [
      {},
      { label: "expected wins", stroke: colour("curve"), width: 1.8, dash: [6, 4], points: { show: false } },
      { label: "buzzer score", scale, stroke: colour("buzz"), width: 1.8, points: { show: false }, spanGaps: true,
        paths: uPlot.paths.stepped({ align: 1 }) },
      dots("first buzz", colour(verdict), colour(verdict), 11),
      { label: "threshold", scale, stroke: colour("buzz"), width: 1.2, dash: [2, 4], points: { show: false }, spanGaps: true },
    ],
  }, [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column])), pick);
  tag(drawn, "human curve", 0.12 * end, curveAt(page.curve, 0.12), "faint");
  if (scores.length) {
    const best = scores.indexOf(Math.max(...scores));
    tag(drawn, "buzzer", Math.min(at(system.read[best]), 0.85 * end), scores[best], "buzz", scale);
  }
  if (threshold !== null) tag(drawn, "answers from here", 0.01 * end, threshold, "buzz", scale);
  return drawn;
}
