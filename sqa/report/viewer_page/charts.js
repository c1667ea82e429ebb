"use strict";
// The two charts of a system, drawn by uPlot.

const HEIGHT = 165;

/** A colour of the page's style, by name. */
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

/** A chart in `box` with a line at the current moment; `pick(x)` is called with the place clicked at. */
function chart(box, options, data, pick) {
  box.textContent = "";
  const plot = new uPlot({
    width: Math.max(box.clientWidth, 200), height: HEIGHT, legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false, click: () => {} } }, ...options,
  }, data, box);
  const here = document.createElement("div");
  here.className = "here";
  plot.over.append(here);
  plot.over.addEventListener("click", (event) => pick(plot.posToVal(event.offsetX, "x")));
  let last = null;
  return {
    plot,
    move(x) {
      last = x;
      here.hidden = x === null;
      if (x !== null) here.style.transform = `translateX(${plot.valToPos(x, "x") - 1}px)`;
    },
    resize() {
      plot.setSize({ width: Math.max(box.clientWidth, 200), height: HEIGHT });
      this.move(last);
    },
    destroy() { plot.destroy(); },
  };
}

/** A name beside its line: at x, y of a chart, in the line's colour. */
function tag(drawn, text, x, y, colourName, scale = "y") {
  const label = document.createElement("span");
  label.className = "tag";
  label.textContent = text;
  label.style.color = `var(--${colourName})`;
  const place = () => {
    label.style.left = `${drawn.plot.valToPos(x, "x") + 4}px`;
    label.style.top = `${drawn.plot.valToPos(y, scale) - 18}px`;
  };
  place();
  drawn.plot.over.append(label);
  const resize = drawn.resize;
  drawn.resize = function () { resize.call(this); place(); };
}

/** Log reciprocal rank of the answer after each word, unaligned words marked on it. */
function rankChart(box, system, page, pick) {
  const trace = system.trace;
  const steps = system.words.map((_, step) => step + 1);
  const logs = trace.r.map((rank) => logRank(rank, page.floor));
  const marked = (mark) => logs.map((y, step) => (trace.u && trace.u[step] === mark ? y : null));
  return chart(box, {
    scales: { x: { time: false, range: [0.5, Math.max(steps.length, 1) + 0.5] }, y: { range: [page.floor - 0.3, 0.3] } },
    axes: [
      axis("word of the translation", { size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] }),
      axis("log MRR (nats)", { size: 48, splits: () => [0, -1, -2, -3, -4].filter((y) => y >= page.floor) }),
    ],
    series: [
      {},
      { label: "log MRR", stroke: colour("rank"), width: 1.8, points: { show: false } },
      dots("unaligned function word", colour("bad"), colour("panel"), 5),
      dots("probably wrong word", colour("bad"), colour("bad"), 8),
    ],
  }, [steps, logs, marked("1"), marked("2")], (x) => pick(Math.round(x) - 1));
}

/** The human expected-wins curve and the buzzer's score over the share of the source read. */
function winsChart(box, system, source, page, pick) {
  const trace = system.trace;
  const at = system.read.map((w) => source.fraction[w]);
  const scores = trace.b || [];
  const rows = page.curve.t.map((t, i) => [t, page.curve.ew[i], null, null]);
  at.forEach((t, step) => {
    const wins = curveAt(page.curve, t);
    rows.push([t, wins, step < scores.length ? scores[step] : null, step === trace.z ? wins : null]);
  });
  // uPlot draws the points nearest to the range's ends: beyond those, lest it choose among several at 0 or 1
  rows.push([-0.02, null, null, null], [1.02, null, null, null]);
  rows.sort((a, b) => a[0] - b[0]); // a stable sort: steps at one place stay in order
  const own = scores.some((score) => score < 0 || score > 1); // scores that are no probabilities have their own axis
  const span = own ? [Math.min(...scores), Math.max(...scores)] : [0, 1];
  const won = trace.z !== undefined && trace.z !== null && trace.r[trace.z] === 1;
  const scale = own ? "score" : "y";
  const axes = [axis("share of the source read (characters)", { size: 30 }), axis(own ? "expected wins" : "expected wins, score", { size: 48 })];
  if (own) axes.push(axis("buzzer score", { scale, side: 1, size: 48, grid: { show: false } }));
  const drawn = chart(box, {
    scales: { x: { time: false, range: [-0.005, 1.005] }, y: { range: [0, 1.05] }, ...(own ? { score: { range: span } } : {}) },
    axes,
    series: [
      {},
      { label: "expected wins", stroke: colour("curve"), width: 1.8, dash: [6, 4], points: { show: false } },
      { label: "buzzer score", scale, stroke: colour("buzz"), width: 1.8, points: { show: false }, spanGaps: true },
      dots("first buzz", colour(won ? "right" : "bad"), colour(won ? "right" : "bad"), 11),
    ],
  }, [0, 1, 2, 3].map((column) => rows.map((row) => row[column])), pick);
  tag(drawn, "human curve", 0.12, curveAt(page.curve, 0.12), "curve");
  if (scores.length) {
    const best = scores.indexOf(Math.max(...scores));
    tag(drawn, "buzzer", Math.min(at[best], 0.85), scores[best], "buzz", scale);
  }
  return drawn;
}
