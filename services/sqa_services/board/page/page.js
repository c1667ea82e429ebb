"use strict";
// The leaderboard, its weights and the queue.  All data come from /api and are inserted as text, never as HTML.

const $ = (id) => document.getElementById(id);
const state = { tasks: [], task: null, weights: null, dataset: "", datasets: [], model: null, models: [], evaluations: [], board: null, me: null };

async function ask(method, path, body) {
  const headers = { Accept: "application/json" };
  const token = localStorage.getItem("sqa-token");
  if (token && (method !== "GET" || path === "api/me")) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined && !(body instanceof Blob)) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(body);
  }
  const reply = await fetch(path, { method, headers, body });
  const text = await reply.text();
  if (reply.ok) return text ? JSON.parse(text) : null;
  let found = {};
  try { found = JSON.parse(text); } catch { /* responses of a proxy or of the size limit are not JSON */ }
  const said = Array.isArray(found.detail) ? found.detail.map((d) => `${d.loc.join(".")}: ${d.msg}`).join("; ") : found.detail;
  throw new Error(said || `${reply.status} from ${path}`);
}

const get = (path) => ask("GET", path);

function make(kind, text, settings = {}) {
  const made = document.createElement(kind);
  if (text instanceof Node) made.append(text);
  else made.textContent = text;
  return Object.assign(made, settings);
}

function fill(table, header, rows) {
  table.tHead.replaceChildren(line(header, "th"));
  table.tBodies[0].replaceChildren(...rows);
}

function line(cells, kind = "td") {
  const row = document.createElement("tr");
  row.append(...cells.map((value) => make(kind, value)));
  if (kind === "th") for (const made of row.cells) made.scope = "col";
  return row;
}

const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const title = (meta) => `${meta.pretty_name}${meta.unit ? `, ${meta.unit}` : ""} ${meta.utility_direction > 0 ? "↑" : "↓"}`;
const interval = (ends) => (ends ? `[${number(ends[0])}, ${number(ends[1])}]` : "–");
const day = (seconds) => (seconds ? new Date(seconds * 1000).toISOString().slice(0, 10) : "–");
const option = (value, text) => make("option", text, { value });

function showWeights() {
  $("weights").replaceChildren(
    ...Object.entries(state.task.metrics).map(([name, meta]) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      const now = (state.weights || state.board.weights)[name] || 0;
      Object.assign(input, { type: "number", min: 0, max: 100, step: 0.5, name, value: now });
      input.addEventListener("change", () => {
        state.weights = { ...(state.weights || state.board.weights) };
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
  if (state.weights) query.set("weights", Object.entries(state.weights).map(([name, weight]) => `${name}=${weight}`).join(","));
  if (state.dataset) query.append("dataset", state.dataset);
  const [board, evaluations, models, status] = await Promise.all([
    get(`api/tasks/${state.task.code}/leaderboard?${query}`),
    get(`api/tasks/${state.task.code}/evaluations`),
    get(`api/tasks/${state.task.code}/models`),
    get("api/status"),
  ]);
  Object.assign(state, { board, evaluations, models, guarded: status.guarded });
  const perf = board.perf_metric;
  const metrics = [perf, ...Object.keys(board.metrics).filter((name) => name !== perf)];
  const header = ["Rank", "Model", "Dynascore", title(board.metrics[perf]), "95% interval", "Made", "Date",
    ...metrics.slice(1).map((name) => title(board.metrics[name])), "Missing"];
  fill($("board"), header, board.rows.map((row) => rankRow(row, metrics)));
  [...$("board").rows].forEach((row) => [...row.cells].slice(4).forEach((c, i) => c.classList.toggle("more", i !== 1)));
  $("refusal").textContent = board.refusal || "";
  showHeadline(board);
  showQueue(status);
  if (!$("weights").contains(document.activeElement)) showWeights();
  showDetail();
}

function rankRow(row, metrics) {
  const open = make("button", row.model, { type: "button" });
  open.addEventListener("click", () => { state.model = row.model; guarded(async () => { await showBoard(); await showModel(); }); });
  const mark = `${row.run_here ? "run here" : "unverified"}${row.note && `, ${row.note}`}`;
  const made = line([row.rank ?? "–", open, number(row.dynascore), number(row.metrics[metrics[0]]), interval(row.interval),
    make("span", mark, { className: "mark" }), day(row.created),
    ...metrics.slice(1).map((name) => number(row.metrics[name])), row.missing.join(", ")]);
  made.classList.toggle("chosen", row.model === state.model);
  return made;
}

function showHeadline(board) {
  $("headline").textContent = `Data: ${board.datasets.join(", ") || "none"}. Rules of the rank: version ${board.rank_version}.`;
}

function showQueue(status) {
  const open = state.evaluations.filter((e) => e.state === "queued" || e.state === "running").length;
  $("state").textContent = `${state.evaluations.length} evaluations, ${open} to do`;
  $("worker").hidden = status.queued === 0 || status.running > 0;
  $("worker").textContent = "Nothing is being evaluated. If this does not change, start a worker on the board's machine: sqa board work";
  fill($("queue"), ["Model", "Data", "State", "Error"], state.evaluations.map((e) => {
    const row = line([e.model, e.prefix ? `${e.prefix}-${e.dataset}` : e.dataset, e.state, e.error || ""]);
    row.lastChild.className = "bad";
    return row;
  }));
}

async function chooseTask(code) {
  state.task = state.tasks.find((task) => task.code === code);
  Object.assign(state, { weights: null, dataset: "", model: null });
  state.datasets = await get(`api/tasks/${code}/datasets`);
  $("dataset").replaceChildren(option("", "all"), ...state.datasets.map((d) => option(d.name, `${d.name} (${d.examples})`)));
  await showBoard();
  showHow();
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
