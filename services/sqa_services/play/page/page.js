"use strict";
// The page of `sqa play serve`. It holds only words that the player may see, since the server sends each word when it is due.

const at = (id) => document.getElementById(id);
const token = location.hash.slice(1); // the server's token, never sent as part of an address
let key = localStorage.getItem("sqa-play-key") || "";
let setup = null;
let game = null; // its id
let state = null; // the last "state" event
let phase = "consent";
let words = [];
let totals = null;
let system = "";
let chosen = -1; // index of the chosen title
let asking = new AbortController(); // aborts the last request for titles
let clock = null;

async function ask(method, path, body, signal) {
  const headers = { "X-Player": key };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(`api/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
  const value = await reply.json().catch(() => ({ detail: `the server answered ${reply.status}` }));
  if (!reply.ok) throw Object.assign(new Error(value.detail), { status: reply.status });
  return value;
}

function tell(error) {
  at("problem").textContent = error ? error.message || String(error) : "";
  at("problem").hidden = !error;
}

const acting = (work) => async (event) => {
  if (event) event.preventDefault();
  try {
    tell(null);
    await work(event);
  } catch (error) {
    tell(error);
  }
};

// ------------------------------------------------------------------------------------------------------ what is shown

function show(now) {
  phase = now;
  at("consent").hidden = now !== "consent";
  at("choose").hidden = now !== "choose";
  at("gather").hidden = now !== "gathering";
  at("game").hidden = !["ready", "reading", "answering", "waiting", "result", "over"].includes(now);
  at("reading").hidden = now !== "reading";
  at("answering").hidden = now !== "answering";
  at("head").hidden = at("result").hidden = now !== "result" && !(now === "over" && state && state.result);
  at("words").hidden = now !== "reading" && now !== "answering";
  at("onward").hidden = !["ready", "waiting", "result", "over"].includes(now);
  at("next").hidden = now === "over" || now === "waiting";
  clearInterval(clock);
  if (now !== "answering") asking.abort();
  if (now === "consent") at("agree").focus();
  if (now === "choose") at("run").focus();
  if (now === "reading") at("buzz").focus();
  if (now === "answering") at("answer").focus();
  if (now === "ready" || now === "result") at("next").focus();
  if (now === "over") at("leave").focus();
  if (now === "result" || now === "over") scrollTo(0, 0);
}

function showWhere(place, of) {
  at("where").textContent = game ? `Question ${Math.min(place + 1, of)} of ${of}` : "";
}

function showScore() {
  if (!totals) return void (at("score").textContent = "");
  const line = (who, one) => `${who}: ${one.right}/${one.questions} right, ${one.points} points, EW ${(one.questions ? one.ew / one.questions : 0).toFixed(3)}`;
  const rival = totals.rival ? ` · ${line(state.mode === "two" ? "other" : "system", totals.rival)}` : "";
  at("score").textContent = line("you", totals.me) + rival;
}

function showWords() {
  at("words").textContent = words.join(" ");
  at("words").scrollTop = at("words").scrollHeight;
}

function fillChoices() {
  at("run").replaceChildren(...setup.runs.map((run) => new Option(`${run.name} (${run.questions} questions)`, run.name)));
  [at("pace").min, at("pace").max] = setup.paces;
  fillSystems();
}

function fillSystems() {
  const run = setup.runs.find((one) => one.name === at("run").value);
  at("system").replaceChildren(...run.systems.map((name) => new Option(name, name)));
  at("system-choice").hidden = at("mode").value === "alone" || !run.systems.length;
}

function countDown(seconds) {
  const end = performance.now() + 1000 * seconds;
  const tick = () => (at("left").textContent = `${Math.max(0, Math.ceil((end - performance.now()) / 1000))} s left`);
  tick();
  clock = setInterval(tick, 250);
}

function startAnswer(seconds) {
  at("answer").value = "";
  showTitles([]);
  show("answering");
  countDown(seconds);
}

function marked(list, marks) {
  // the words, with a mark where each contestant buzzed; count is the number of words before the mark
  const parts = [];
  list.forEach((word, i) => {
    for (const [count, kind, sign] of marks) if (count === i) parts.push(mark(kind, sign));
    parts.push(`${word} `);
  });
  for (const [count, kind, sign] of marks) if (count === list.length) parts.push(mark(kind, sign));
  return parts;
}

function mark(kind, sign) {
  const span = document.createElement("span");
  span.className = `${kind}-mark`;
  span.textContent = `${sign} `;
  return span;
}

function showResult(event) {
  const { mine, system: theirs } = event;
  const said = mine.step === null ? "No buzz" : mine.right ? "Right" : "Wrong";
  at("verdict").textContent = `${said}: ${event.page}`;
  at("verdict").className = mine.right ? "right" : "wrong";
  const own = mine.step === null ? "You did not buzz." : `You said “${mine.answer}” with ${(100 * mine.fraction).toFixed(0)}% of the source read: expected wins ${mine.ew.toFixed(3)}.`;
  let other = "";
  if (theirs) {
    other = theirs.step === null ? ` ${theirs.name} did not buzz.` : ` ${theirs.name} said “${theirs.answer}” at ${(100 * theirs.fraction).toFixed(0)}%, ${theirs.right ? "right" : "wrong"}: ${theirs.ew.toFixed(3)}.`;
  }
  at("versus").textContent = own + other;
  const inSource = [], inTranslation = [];
  if (mine.step !== null) inSource.push([mine.words, "me", "▲"]);
  if (theirs && theirs.step !== null) inSource.push([theirs.words, "system", "◆"]);
  if (event.marks && mine.step !== null) inTranslation.push([mine.step + 1, "me", "▲"]);
  if (event.marks && theirs && theirs.same && theirs.step !== null) inTranslation.push([theirs.step + 1, "system", "◆"]);
  at("translation").replaceChildren(...marked(event.translation, inTranslation));
  at("source").lang = event.language;
  at("source").replaceChildren(...marked(event.source, inSource));
  at("reference").textContent = event.reference;
  at("system-name").textContent = theirs ? theirs.name : "";
  at("system-name").previousElementSibling.hidden = !theirs;
  drawCurve(mine, theirs);
  at("waiting").textContent = "";
}

function drawCurve(mine, theirs) {
  const [width, height, left, top] = [400, 150, 30, 10];
  const x = (t) => left + t * (width - left - 12), y = (ew) => height - 22 - ew * (height - 22 - top);
  const make = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "expected-wins curve" });
  svg.append(make("rect", { class: "frame", x: x(0), y: y(1), width: x(1) - x(0), height: y(0) - y(1) }));
  svg.append(make("polyline", { class: "ew", points: setup.curve.map((ew, i) => `${x(i / 100).toFixed(1)},${y(ew).toFixed(1)}`).join(" ") }));
  for (const t of [0, 0.5, 1]) {
    svg.append(make("text", { x: x(t), y: height - 6, "text-anchor": t === 1 ? "end" : "middle" }, `${100 * t}%`));
  }
  for (const ew of [0, 1]) svg.append(make("text", { x: x(0) - 5, y: y(ew) + 4, "text-anchor": "end" }, ew));
  const put = (one, kind, shape) => {
    if (!one || one.step === null) return;
    const [cx, cy] = [x(one.fraction), y(one.ew)];
    svg.append(make("polygon", { class: kind, points: shape.map(([dx, dy]) => `${cx + dx},${cy + dy}`).join(" ") }));
  };
  put(theirs, "system", [[0, -7], [7, 0], [0, 7], [-7, 0]]);
  put(mine, "me", [[0, -7], [7, 6], [-7, 6]]);
  at("curve").replaceChildren(svg);
}

// ------------------------------------------------------------------------------------------------- what the server says

const hear = {
  state(event) {
    state = event;
    totals = event.scores;
    at("shown-code").textContent = event.game;
    showWhere(event.place, event.of);
    if (event.result) showResult(event.result);
    const now = event.phase === "ready" && event.result ? "result" : event.phase;
    words = event.words;
    showWords();
    if (now === "answering") startAnswer(event.left);
    else show(now);
    showScore();
    if (now === "waiting") hear.waiting();
    else at("waiting").textContent = event.ready ? "waiting for the other player" : "";
  },
  question(event) {
    at("waiting").textContent = "";
    words = [];
    state.result = null;
    showWords();
    showWhere(event.place, event.of);
    show("reading");
  },
  word(event) {
    if (event.erase) words.splice(words.length - event.erase);
    if (event.word) words.push(event.word);
    showWords();
  },
  buzzed(event) {
    startAnswer(event.left);
  },
  waiting() {
    show("waiting");
    at("waiting").textContent = "waiting for the other player; then the answer is shown";
  },
  result(event) {
    state.result = event;
    showResult(event);
    show("result");
  },
  scores(event) {
    totals = event;
    showScore();
    if (event.beside) {
      const { step, answer, right } = event.beside;
      at("versus").textContent += step === null ? " The other player did not buzz." : ` The other player said “${answer}”, ${right ? "right" : "wrong"}.`;
    }
    if (state.mode !== "alone" && event.points !== null) at("versus").textContent += ` Points: ${event.points}.`;
  },
  ready(event) {
    if (!event.all) at("waiting").textContent = event.me ? "waiting for the other player" : "the other player is ready";
  },
  over() {
    show("over");
  },
  problem(event) {
    tell(event.text);
  },
  elsewhere() {
    game = null;
    tell("This game continues in another window.");
  },
};

async function follow(id) {
  // reads the stream of a game, and opens it again when it breaks
  game = id;
  sessionStorage.setItem("sqa-play-game", id);
  while (game === id) {
    try {
      const headers = { "X-Player": key };
      if (token) headers.Authorization = `Bearer ${token}`;
      const reply = await fetch(`api/games/${id}/events`, { headers });
      if (!reply.ok) {
        if (reply.status < 500) return void quit((await reply.json()).detail);
        throw new Error("the server cannot go on");
      }
      tell(null);
      await listen(reply.body.getReader(), id);
    } catch (error) {
      if (game === id) tell("The server does not answer; trying again.");
    }
    await new Promise((done) => setTimeout(done, 500));
  }
}

async function listen(reader, id) {
  const decoder = new TextDecoder();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (game !== id) return void reader.cancel();
    held += decoder.decode(value, { stream: true });
    const events = held.split("\n\n");
    held = events.pop();
    for (const text of events) {
      if (!text.startsWith("data: ")) continue;
      const event = JSON.parse(text.slice(6));
      hear[event.type](event);
    }
  }
}

function quit(problem) {
  game = state = totals = null;
  sessionStorage.removeItem("sqa-play-game");
  showWhere(0, 0);
  showScore();
  show("choose");
  at("wait").textContent = "";
  tell(problem || null);
}

// --------------------------------------------------------------------------------------------------- what the player does

const act = (what, body) => ask("POST", `games/${game}/${what}`, body);
const buzz = acting(async () => {
  try {
    await act("buzz");
  } catch (error) {
    if (error.status !== 409) throw error; // 409: no word yet, or pressed twice
  }
});
const next = acting(() => act("next"));

function showTitles(list) {
  chosen = -1;
  at("titles").replaceChildren(
    ...list.map((title, i) => {
      const item = document.createElement("li");
      item.role = "option";
      item.id = `title-${i}`;
      item.textContent = title;
      item.addEventListener("click", () => {
        at("answer").value = title;
        at("answer").focus();
      });
      return item;
    }),
  );
  at("answer").setAttribute("aria-expanded", String(list.length > 0));
  at("answer").removeAttribute("aria-activedescendant");
}

function choose(step) {
  const items = [...at("titles").children];
  if (!items.length) return;
  chosen = (chosen + step + items.length) % items.length;
  items.forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
  at("answer").value = items[chosen].textContent;
  at("answer").setAttribute("aria-activedescendant", items[chosen].id);
}

at("answer").addEventListener("input", async () => {
  asking.abort();
  const mine = (asking = new AbortController());
  try {
    const { pages } = await ask("GET", `games/${game}/pages?text=${encodeURIComponent(at("answer").value)}`, undefined, mine.signal);
    if (!mine.signal.aborted) showTitles(pages);
  } catch (error) {
    if (!mine.signal.aborted) tell(error);
  }
});
at("answer").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === " " && event.repeat) event.preventDefault(); // the space bar is still held after the buzz
  if (step) {
    event.preventDefault();
    choose(step);
  }
});
at("answering").addEventListener("submit", acting(() => {
  asking.abort(); // ignore titles that arrive after the answer
  return act("answer", { answer: at("answer").value });
}));
document.addEventListener("keydown", (event) => {
  if (event.key !== " " || event.repeat || phase !== "reading" || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault(); // otherwise the focused button is pressed as well
  buzz();
});
document.addEventListener("keyup", (event) => {
  if (event.key === " " && phase !== "choose" && event.target.id === "buzz") event.preventDefault();
});
at("buzz").addEventListener("click", buzz);
at("next").addEventListener("click", next);
at("leave").addEventListener("click", () => quit());
at("run").addEventListener("change", fillSystems);
at("mode").addEventListener("change", fillSystems);
at("new").addEventListener("submit", acting(async () => {
  const wanted = { run: at("run").value, mode: at("mode").value, system: at("system").value };
  at("wait").textContent = "creating the game";
  try {
    const made = await ask("POST", "games", { ...wanted, pace: Number(at("pace").value), questions: Number(at("questions").value) });
    follow(made.game);
  } finally {
    at("wait").textContent = "";
  }
}));
at("join").addEventListener("submit", acting(async () => {
  const code = at("code").value.trim().toLowerCase();
  follow((await ask("POST", `games/${encodeURIComponent(code)}/join`)).game);
}));
at("agree").addEventListener("click", acting(async () => {
  const made = await ask("POST", "players", { consent: setup.consent.hash });
  remember(made.key, made.player);
  show("choose");
}));
at("forget").addEventListener("click", acting(async () => {
  if (!confirm("Delete everything that is stored about you?")) return;
  await ask("DELETE", "players");
  remember("", "");
  show("consent");
}));

function remember(newKey, player) {
  key = newKey;
  for (const [name, value] of [["sqa-play-key", newKey], ["sqa-play-player", player]]) {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  }
  at("me").textContent = player ? `You are ${player}.` : "";
}

acting(async () => {
  setup = await ask("GET", "setup");
  at("consent-text").replaceChildren(...setup.consent.text.split("\n\n").map((text) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    return paragraph;
  }));
  fillChoices();
  remember(key, localStorage.getItem("sqa-play-player") || "");
  const before = sessionStorage.getItem("sqa-play-game");
  if (!key) show("consent");
  else if (before) follow(before);
  else show("choose");
})();
