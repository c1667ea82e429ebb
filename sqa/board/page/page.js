"use strict";
// Everything shown comes from /api and is only ever set as text.

const $ = (id) => document.getElementById(id);
const state = { tasks: [], task: null, weights: {}, dataset: "", model: null, evaluations: [] };

async function get(path) {
  const reply = await fetch(path, { headers: { Accept: "application/json" } });
  const body = await reply.json();
  if (!reply.ok) throw new Error(typeof body.detail === "string" ? body.detail : `${reply.status} from ${path}`);
  return body;
}

function cell(value, kind = "td") {
  const made = document.createElement(kind);
  if (value instanceof Node) made.append(value);
  else made.textContent = value;
  return made;
}

function fill(table, header, rows) {
  table.tHead.replaceChildren(line(header, "th"));
  table.tBodies[0].replaceChildren(...rows);
}

function line(cells, kind = "td") {
  const row = document.createElement("tr");
  row.append(...cells.map((value) => cell(value, kind)));
  if (kind === "th") for (const made of row.cells) made.scope = "col";
  return row;
}

const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const title = (meta) => `${meta.pretty_name}${meta.unit ? `, ${meta.unit}` : ""} ${meta.utility_direction > 0 ? "↑" : "↓"}`;

function option(value, text) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = text;
  return made;
}

function showWeights() {
  $("weights").replaceChildren(
    ...Object.entries(state.task.metrics).map(([name, meta]) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      Object.assign(input, { type: "number", min: 0, max: 100, step: 0.5, name, value: state.weights[name] || 0 });
      input.addEventListener("change", () => {
        state.weights[name] = Math.max(0, Number(input.value) || 0);
        guarded(showBoard);
      });
      label.append(meta.pretty_name, input);
      return label;
    }),
  );
}

async function showBoard() {
  const query = new URLSearchParams();
  query.set("weights", Object.entries(state.weights).map(([name, weight]) => `${name}=${weight}`).join(","));
  if (state.dataset) query.append("dataset", state.dataset);
  const found = await get(`api/tasks/${state.task.code}/leaderboard?${query}`);
  const metrics = Object.keys(found.metrics);
  const header = ["Model", "Dynascore", ...metrics.map((name) => title(found.metrics[name])), "Lacks"];
  const rows = found.rows.map((row) => {
    const open = document.createElement("button");
    open.type = "button";
    open.textContent = row.model;
    open.addEventListener("click", () => { state.model = row.model; guarded(showBoard); });
    const made = line([open, number(row.dynascore), ...metrics.map((name) => number(row.metrics[name])), row.missing.join(", ")]);
    made.classList.toggle("chosen", row.model === state.model);
    return made;
  });
  fill($("board"), header, rows);
  $("refusal").textContent = found.refusal || "";
  state.evaluations = await get(`api/tasks/${state.task.code}/evaluations`);
  showQueue();
  showDetail();
}

function showQueue() {
  const open = state.evaluations.filter((e) => e.state === "queued" || e.state === "running").length;
  $("state").textContent = `${state.evaluations.length} evaluations, ${open} to do`;
  fill($("queue"), ["Model", "Data", "State", "Error"], state.evaluations.map((e) => {
    const row = line([e.model, e.prefix ? `${e.prefix}-${e.dataset}` : e.dataset, e.state, e.error || ""]);
    row.lastChild.className = "bad";
    return row;
  }));
}

function showDetail() {
  const mine = state.evaluations.filter(
    (e) => e.model === state.model && e.state === "done" && (!state.dataset || e.dataset === state.dataset));
  $("detail").hidden = mine.length === 0;
  $("detail").querySelector("h2").textContent = state.model || "";
  const perf = state.task.perf_metric;
  const tags = mine.filter((e) => !e.prefix).flatMap((e) =>
    byName(JSON.parse(e.result.metadata_json).perf_by_tag).map((tag) =>
      line([tag.tag, e.dataset, tag.n ?? "–", number(tag.perf), interval(tag.interval)])));
  fill($("tags"), ["Tag", "Data", "Examples", title(state.task.metrics[perf]), "95% interval"], tags);
  const deltas = mine.filter((e) => e.prefix).flatMap((e) =>
    JSON.parse(e.result.metadata_json).transforms.flatMap((transform) =>
      Object.entries(transform.differences).map(([metric, d]) =>
        line([transform.transform, e.dataset, transform.n, `${number(transform.unperturbed_percent, 1)} %`, metric,
          d.refusal || number(d.diff), d.refusal ? "" : interval([d.low, d.high]), number(d.p_bootstrap)]))));
  fill($("deltas"), ["Perturbation", "Data", "Examples", "Same answer", "Metric", "Difference", "95% interval", "p"], deltas);
}

const byName = (tags) => tags.sort((a, b) => a.tag.localeCompare(b.tag, "en", { numeric: true }));
const interval = (ends) => (ends ? `[${number(ends[0])}, ${number(ends[1])}]` : "–");

async function chooseTask(code) {
  state.task = state.tasks.find((task) => task.code === code);
  Object.assign(state, { weights: { ...state.task.default_weights }, dataset: "", model: null });
  const datasets = await get(`api/tasks/${code}/datasets`);
  $("dataset").replaceChildren(option("", "all"), ...datasets.map((d) => option(d.name, `${d.name} (${d.examples})`)));
  showWeights();
  await showBoard();
}

async function guarded(work) {
  try {
    await work();
    $("problem").hidden = true;
  } catch (error) {
    $("problem").textContent = error.message;
    $("problem").hidden = false;
  }
}

$("task").addEventListener("change", () => guarded(() => chooseTask($("task").value)));
$("dataset").addEventListener("change", () => { state.dataset = $("dataset").value; guarded(showBoard); });
$("weights").addEventListener("submit", (event) => event.preventDefault());
guarded(async () => {
  state.tasks = await get("api/tasks");
  $("task").replaceChildren(...state.tasks.map((task) => option(task.code, task.code)));
  await chooseTask(state.tasks[0].code);
});
setInterval(() => { if (state.task && !document.hidden) guarded(showBoard); }, 10000);
