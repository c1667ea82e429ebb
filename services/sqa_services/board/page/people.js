"use strict";
// Tokens, submissions, and initialization of the page.

const PLACEHOLDER = "YOUR-TOKEN";

async function learnWho() {
  state.me = null;
  if (localStorage.getItem("sqa-token") || !state.guarded) {
    try {
      state.me = (await get("api/me")).role;
    } catch {
      localStorage.removeItem("sqa-token");
    }
  }
  showWho();
}

function showWho() {
  const signed = Boolean(localStorage.getItem("sqa-token"));
  $("who").textContent = signed ? `Signed in as ${state.me}.`
    : state.guarded ? "A token is needed: ask the owners of the board." : "Everybody who can reach this board may submit.";
  $("sign-in").hidden = signed || !state.guarded;
  $("sign-out").hidden = !signed;
  $("upload").hidden = state.guarded && !signed;
  showHow();
}

function showHow() {
  if (!state.task) return;
  const token = state.guarded || localStorage.getItem("sqa-token") ? ` -H 'Authorization: Bearer ${PLACEHOLDER}'` : "";
  $("command").textContent = `curl -T submission.jsonl${token} ${new URL(`api/tasks/${state.task.code}/models/`, location.href)}NAME`;
  $("inputs").replaceChildren(...state.datasets.flatMap((d, i) => [i ? ", " : "",
    make("a", d.name, { href: `api/tasks/${state.task.code}/datasets/${d.name}/examples` })]));
  if (!state.datasets.length) $("inputs").textContent = "no data set yet";
}

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
}

const fields = (form) => Object.fromEntries(new FormData(form));

function on(id, work) {
  $(id).addEventListener("submit", (event) => { event.preventDefault(); guarded(() => work(fields($(id)))); });
}

on("sign-in", async (given) => {
  localStorage.setItem("sqa-token", given.token);
  $("sign-in").reset();
  await learnWho();
  if (!state.me) throw new Error("The token is unknown");
  await showBoard();
});
on("upload", async (given) => {
  await ask("PUT", `api/tasks/${state.task.code}/models/${given.name}`, given.file);
  $("upload").reset();
  state.model = given.name;
  await showBoard();
  await showModel();
});
$("sign-out").addEventListener("click", () => {
  localStorage.removeItem("sqa-token");
  guarded(async () => { await learnWho(); await showBoard(); });
});
$("copy").addEventListener("click", () => guarded(() => copy($("copy"), $("command").textContent)));

guarded(async () => {
  state.tasks = await get("api/tasks");
  $("task").replaceChildren(...state.tasks.map((task) => option(task.code, task.code)));
  await chooseTask(state.tasks[0].code);
  await learnWho();
  await showBoard();
});
setInterval(() => {
  if (state.task && !document.hidden) guarded(async () => { await showBoard(); await showModel(); });
}, 10000);
