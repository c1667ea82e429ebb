"use strict";
// One model: its evaluations, its tags, and the actions of owners.

const byName = (tags) => tags.sort((a, b) => a.tag.localeCompare(b.tag, "en", { numeric: true }));

function showDetail() {
  const model = state.models.find((m) => m.name === state.model);
  $("detail").hidden = !model;
  if (!model) return;
  if ($("detail").querySelector("h2").textContent !== model.name) {  // the tables still show another model
    $("log").replaceChildren();
  }
  $("detail").querySelector("h2").textContent = model.name;
  const row = state.board.rows.find((r) => r.model === model.name);
  const made = model.kind === "submission" ? "unverified: a file" : "run here";
  const waits = state.evaluations.some((e) => e.model === model.name && (e.state === "queued" || e.state === "running"));
  const standing = row && row.rank ? `rank ${row.rank}` : waits ? "not scored yet" : row?.note || "no rank";
  $("standing").textContent = `${standing}; ${made}, ${day(model.created)}`;
  $("numbers").textContent = row ? numbersOf(row) : "";
  showActions(model);
  const done = state.evaluations.filter((e) => e.model === model.name && e.state === "done" && (!state.dataset || e.dataset === state.dataset));
  showTags(done.filter((e) => !e.prefix));
  showDeltas(done.filter((e) => e.prefix));
}

function numbersOf(row) {
  const perf = state.board.perf_metric;
  const said = Object.entries(row.metrics).map(([name, value]) =>
    `${title(state.board.metrics[name])} ${number(value)}${name === perf && row.interval ? ` ${interval(row.interval)}` : ""}`);
  return said.join("; ");
}

function showTags(done) {
  const perf = state.task.perf_metric;
  const rows = done.flatMap((e) => byName(JSON.parse(e.result.metadata_json).perf_by_tag).map((tag) =>
    line([tag.tag, e.dataset, tag.n ?? "–", number(tag.perf), interval(tag.interval)])));
  $("tags").closest("div:not(.wide)").hidden = rows.length === 0;
  fill($("tags"), ["Tag", "Data", "Examples", title(state.task.metrics[perf]), "95% interval"], rows);
}

function showDeltas(done) {
  const rows = done.flatMap((e) => JSON.parse(e.result.metadata_json).transforms.map((each) =>
    line([each.transform, e.dataset, each.n, `${number(each.unperturbed_percent, 1)} %`])));
  $("deltas").closest("div:not(.wide)").hidden = rows.length === 0;
  fill($("deltas"), ["Perturbation", "Data", "Examples", "Same answer"], rows);
}

function showActions(model) {
  if (state.me !== "owner") { $("actions").replaceChildren(); return; }
  const failed = state.evaluations.some((e) => e.model === model.name && e.state === "failed");
  const does = [["", "Delete"]];
  if (failed) does.push(["requeue", "Queue failed evaluations again"]);
  $("actions").replaceChildren(...does.map(([what, text]) => {
    const button = make("button", text, { type: "button" });
    button.addEventListener("click", () => act(model, what, text));
    return button;
  }));
}

function act(model, what, text) {
  if (!what && !window.confirm(`${text} ${model.name}, with its scores?`)) return;
  const path = `api/tasks/${state.task.code}/models/${model.name}`;
  guarded(async () => {
    await ask(what ? "POST" : "DELETE", what ? `${path}/${what}` : path);
    if (!what) state.model = null;
    await showBoard();
    await showModel();
  });
}

async function showModel() {
  if (!state.model || $("detail").hidden) return;
  const asked = state.model;
  const all = await get(`api/tasks/${state.task.code}/evaluations`);
  if (asked !== state.model) return;
  const mine = all.filter((e) => e.model === asked);
  $("log").replaceChildren(...mine.map((e) => make("li", `${e.prefix ? `${e.prefix}-` : ""}${e.dataset}: ${e.state}${e.error ? `: ${e.error}` : ""}`)));
}
