/* The labelling page. Names of files and classes are only ever put in as text; nothing is built from strings. */
"use strict";

const $ = (id) => document.getElementById(id);
const TOKEN = document.querySelector("meta[name=protocon-token]").content;
const COLOURS = ["#5eead4", "#fcd34d", "#93c5fd", "#fca5a5", "#c4b5fd", "#86efac", "#f9a8d4", "#fdba74", "#a5b4fc", "#d9f99d"];
const VIEWS = {
  class: ["By class", "What the model takes for this class. Click an image to answer it."],
  doubtful: ["Most doubtful", "Where the model is least sure. Click an image to answer it."],
  groups: ["Look-alikes", "Groups that the model sees as one class."],
  wrong: ["Your labels that look wrong", "All your other labels together would have said something else."],
  strangers: ["Fits no class", "Least like anything that has a label: perhaps a class that is missing."],
  mine: ["Your labels", "What you have answered, the latest first."],
};

const state = {
  view: "label", item: null, classes: [], status: null, busy: false, active: 0, round: -1,
  review: "class", page: 0, back: false, groupSkip: 0, group: null, asking: false, history: null,
};

/* ---- small helpers ---- */

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function unique() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

function tabName() {
  try {
    let name = sessionStorage.getItem("protocon-tab");
    if (!name) sessionStorage.setItem("protocon-tab", (name = unique()));
    return name;
  } catch { return unique(); }
}
const TAB = tabName();

const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
const width = (share) => `${(100 * share).toFixed(2)}%`;
const nameOf = (id) => state.classes.find((c) => c.id === id)?.name ?? "";
const source = (item, size) => `image/${item.number}?size=${size}&v=${item.stamp}&token=${encodeURIComponent(TOKEN)}`;
const say = (text) => { $("said").textContent = text; };

function banner(text, mild = false) {
  $("banner").hidden = !text;
  $("banner").className = mild ? "mild" : "";
  $("banner").textContent = text || "";
}

/* ---- talking to the server ---- */

class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

class Unanswered extends Error {}

async function call(path, body) {
  const options = { headers: { "X-ProtoCon-Token": TOKEN }, cache: "no-store" };
  if (body) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify({ tab: TAB, ...body });
  }
  const answer = await fetch(path, options).catch((error) => { throw new Unanswered(error.message); });
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, content.error || `error ${answer.status}`);
  return content;
}

/* What is fetched in passing may find the server gone: `poll` says so, and asks again. */
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Refused) banner(event.reason.message);
  if (event.reason instanceof Refused || event.reason instanceof Unanswered) event.preventDefault();
});

/* An answer is sent until it is saved, with the same key: one that arrived but was not confirmed counts once. */
async function send(path, body) {
  body.key = unique();
  for (let tries = 0; ; tries += 1) {
    try {
      const content = await call(path, body);
      if (tries) banner("");
      return content;
    } catch (error) {
      const again = !(error instanceof Refused) || error.status === 507 || error.status === 429;
      if (!again) { banner(error.message); setTimeout(() => banner(""), 8000); throw error; }
      banner(error instanceof Refused ? `${error.message} — trying again.` : "The server does not answer. Your last answer is kept here and sent again; start `protocon label` if it has stopped.");
      await new Promise((done) => setTimeout(done, 800));
    }
  }
}

async function exclusively(work) {
  if (state.busy) return;
  state.busy = true;
  try { await work(); } catch (error) { if (!(error instanceof Refused)) throw error; } finally { state.busy = false; }
}

/* ---- one image ---- */

function showItem(content) {
  if (content.classes) state.classes = content.classes;
  state.item = content.next;
  for (const coming of content.ahead || []) new Image().src = source(coming, "large");
  $("entry").value = "";
  state.active = 0;
  zoom(false);
  const item = state.item;
  $("picture").hidden = !item;
  $("empty").hidden = !!item;
  $("reason").textContent = item ? item.reason || "" : "";
  $("caption").textContent = item ? item.name : "";
  $("chip").hidden = !item || item.why !== "audit";
  $("chip").textContent = "random check: the model’s guess is not shown";
  $("neighbours").hidden = !item || !item.neighbours.length;
  if (item) {
    state.round = state.status ? state.status.round : -1;
    $("picture").alt = `Image ${item.name}`;
    $("picture").src = source(item, "large");
    $("neighbour-list").replaceChildren(...item.neighbours.map((near) =>
      el("li", {}, el("img", { src: source(near, "thumb"), alt: "", loading: "lazy" }), el("span", {}, nameOf(near.class_id)))));
  } else {
    $("empty").textContent = content.waiting ? "Looking at your images. The first questions come in a moment…" : "Every image is answered. Well done!";
    if (content.waiting) setTimeout(() => state.item || fetchNext(), 500);
  }
  drawClasses();
}

/* Only while no image is shown: a reply that comes late must not clear what somebody has begun to type. */
async function fetchNext() {
  if (state.asking || state.item) return;
  state.asking = true;
  try {
    const content = await call(`api/next?tab=${TAB}`);
    if (!state.item) showItem(content);
  } catch (error) { banner(error.message); } finally { state.asking = false; }
}

function rankOf(id) { return state.item?.ranking.find((rank) => rank.class_id === id)?.share ?? 0; }

function options() {
  const typed = $("entry").value.trim();
  const wanted = typed.toLocaleLowerCase();
  const found = state.classes.filter((c) => c.name.toLocaleLowerCase().includes(wanted));
  found.sort((a, b) => wanted ? b.name.toLocaleLowerCase().startsWith(wanted) - a.name.toLocaleLowerCase().startsWith(wanted) : 0);
  const list = found.map((c) => ({ id: c.id, name: c.name, labels: c.labels, key: state.classes.indexOf(c) + 1 }));
  if (typed && !state.classes.some((c) => c.name.toLocaleLowerCase() === wanted)) list.push({ id: "", name: typed, fresh: true });
  return list;
}

function drawClasses() {
  const list = options(), typed = $("entry").value.trim();
  const best = state.item?.ranking[0]?.class_id;
  state.active = Math.min(state.active, Math.max(0, list.length - 1));
  $("class-list").replaceChildren(...list.map((option, place) => {
    const share = option.fresh ? 0 : rankOf(option.id);
    const bar = el("i");
    bar.style.width = width(share);
    const chosen = typed ? place === state.active : option.id === best;
    return el("li", {
      role: "option", id: `option-${place}`, "aria-selected": String(chosen), class: option.fresh ? "new" : "",
      onclick: () => answer(option),
    },
    bar,
    option.fresh ? el("kbd", {}, "↵") : option.key <= 9 ? el("kbd", {}, String(option.key)) : null,
    el("span", { class: "name" }, option.fresh ? `New class “${option.name}”` : option.name),
    el("span", { class: "said" }, share >= 0.005 ? percent(share) : option.labels ? `${option.labels}` : ""));
  }));
  $("entry").setAttribute("aria-activedescendant", typed && list.length ? `option-${state.active}` : "");
}

function answer(option, act = "label") {
  const item = state.item;
  if (!item) return;
  exclusively(async () => {
    const body = { do: act, images: [{ number: item.number, stamp: item.stamp }], why: item.why };
    if (act === "label") Object.assign(body, option.id ? { class_id: option.id } : { name: option.name });
    try {
      const content = await send("api/answer", body);
      const what = act === "label" ? nameOfIn(content.classes, content.class_id) : act === "none" ? "none of these" : "skipped";
      if (state.back) return leaveReview(content);
      showItem(content);
      say(`Saved: ${what}. ${state.item ? `Next image ${state.item.name}` : ""}`);
    } catch (error) {
      if (error.status === 409 || error.status === 422) { state.item = null; await fetchNext(); }
      throw error;
    }
  });
}

const nameOfIn = (classes, id) => classes.find((c) => c.id === id)?.name ?? "";

function suggestion() {
  const best = state.item?.ranking[0];
  return best ? { id: best.class_id, name: nameOf(best.class_id) } : null;
}

function undo(of) {
  return exclusively(async () => {
    const content = await send("api/undo", of ? { of } : {});
    if (!content.undone) { say("Nothing to undo."); return; }
    state.classes = content.classes;
    say(`Undone: ${content.undone.do} ${content.undone.name}`);
    if (content.next && state.view === "label") showItem({ ...content, ahead: [] });
    else drawClasses();
  });
}

function zoom(on) {
  $("frame").classList.toggle("zoomed", on);
  $("do-zoom").setAttribute("aria-pressed", String(on));
  if (on && state.item) $("picture").src = source(state.item, "full");
}
const zoomed = () => $("frame").classList.contains("zoomed");

/* ---- look-alikes ---- */

async function fetchGroup() {
  const content = await call(`api/grid?skip=${state.groupSkip}`);
  state.group = content.groups[0] || null;
  if (!state.group && state.groupSkip) { state.groupSkip = 0; return fetchGroup(); }
  const group = state.group;
  $("grid-empty").hidden = !!group;
  $("grid-empty").textContent = "No look-alikes to show yet: the first images are still being looked at, or all are answered.";
  $("grid-class").value = group ? nameOf(group.class_id) : "";
  $("grid").replaceChildren(...(group ? group.images : []).map((image, place) =>
    el("button", {
      class: "tile", "aria-pressed": "true", "aria-label": image.name, tabindex: place ? "-1" : "0",
      onclick: (event) => toggle(event.currentTarget),
    }, el("img", { src: source(image, "thumb"), alt: "" }))));
  countChosen();
  return undefined;
}

function toggle(tile) {
  tile.setAttribute("aria-pressed", String(tile.getAttribute("aria-pressed") !== "true"));
  countChosen();
}

const chosenTiles = () => [...$("grid").children].map((tile, i) => [tile, i]).filter(([tile]) => tile.getAttribute("aria-pressed") === "true");

function countChosen() {
  const count = chosenTiles().length;
  $("grid-accept").textContent = `Accept ${count}`;
  $("grid-accept").disabled = !count;
}

function acceptGroup() {
  const name = $("grid-class").value.trim();
  const images = chosenTiles().map(([, i]) => ({ number: state.group.images[i].number, stamp: state.group.images[i].stamp }));
  if (!state.group || !images.length) return;
  if (!name) { $("grid-class").focus(); say("Which class are these?"); return; }
  const known = state.classes.find((c) => c.name === name);
  exclusively(async () => {
    try {
      const body = { do: "label", images, why: "grid", ...(known ? { class_id: known.id } : { name }) };
      state.classes = (await send("api/answer", body)).classes;
      say(`Saved ${images.length} images as ${name}.`);
    } finally { await fetchGroup(); }
    $("grid").firstElementChild?.focus();
  });
}

function moveInGrid(key) {
  const tiles = [...$("grid").children], at = tiles.indexOf(document.activeElement);
  const columns = getComputedStyle($("grid")).gridTemplateColumns.split(" ").length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  const target = tiles[Math.max(0, Math.min(tiles.length - 1, Math.max(at, 0) + (at < 0 ? 0 : step)))];
  tiles.forEach((tile) => { tile.tabIndex = tile === target ? 0 : -1; });
  target?.focus();
}

/* ---- what the model thinks ---- */

function drawPills() {
  $("pills").replaceChildren(...Object.entries(VIEWS).map(([key, [title]]) => {
    const extra = key === "wrong" && state.status?.doubted ? ` (${state.status.doubted})` : "";
    return el("button", { "aria-pressed": String(state.review === key), onclick: () => { state.review = key; fetchReview(); } }, title + extra);
  }));
}

function fillSelect(select, classes, first) {
  const chosen = select.value;
  select.replaceChildren(...(first ? [el("option", { value: "" }, first)] : []), ...classes.map((c) => el("option", { value: c.id }, c.name)));
  if ([...select.options].some((option) => option.value === chosen)) select.value = chosen;
}

async function fetchReview(more = false) {
  const view = state.review;
  drawPills();
  $("review-about").textContent = VIEWS[view][1];
  $("review-class-label").hidden = view !== "class" && view !== "mine";
  $("review-order-label").hidden = view !== "class";
  fillSelect($("review-class"), state.classes, view === "mine" ? "all" : "");
  state.page = more ? state.page + 1 : 0;
  if ($("review").dataset.view !== view) $("review").replaceChildren();  // images of another view must not be clicked under this heading
  $("review").dataset.view = view;
  const query = new URLSearchParams({ view, class_id: $("review-class").value, order: $("review-order").value, page: state.page });
  const content = view === "groups" ? { groups: (await call("api/grid?count=6")).groups, more: false } : await call(`api/browse?${query}`);
  if (view !== state.review) return;
  const nodes = content.groups ? content.groups.map(groupNode) : content.images.map(reviewTile);
  if (more) $("review").append(...nodes); else $("review").replaceChildren(...nodes);
  $("review-more").hidden = !content.more;
  $("review-empty").hidden = $("review").childElementCount > 0;
  $("review-empty").textContent = state.classes.length < 2 ? "The model needs labels of two classes first." : "Nothing here at the moment.";
}

function reviewTile(image) {
  const doubted = state.review === "wrong" && image.better;
  const label = image.none ? "none of these" : nameOf(image.label || image.guess);
  const under = doubted
    ? [el("span", {}, nameOf(image.label)), el("span", { class: "swap" }, `→ ${nameOf(image.better)}?`)]
    : [el("span", {}, label), el("em", {}, image.label ? "yours" : image.none ? "" : percent(image.sure))];
  return el("button", { class: "tile", "aria-label": `${image.name}: ${label}`, onclick: () => openReview(image) },
    el("img", { src: source(image, "thumb"), alt: "", loading: "lazy" }), el("span", { class: "under" }, ...under));
}

function groupNode(group, place) {
  return el("div", { class: "group" },
    el("h3", {}, nameOf(group.class_id) || "look-alikes",
      el("button", { onclick: () => { state.groupSkip = place; select("grid"); } }, "Open in the grid")),
    el("div", { class: "tiles" }, ...group.images.map((image) =>
      el("button", { class: "tile", "aria-label": image.name, onclick: () => openReview(image) },
        el("img", { src: source(image, "thumb"), alt: "", loading: "lazy" })))));
}

async function openReview(image) {
  const item = await call(`api/item?number=${image.number}`);
  state.back = true;
  $("do-back").hidden = false;
  select("label", false);
  showItem({ next: item, ahead: [] });
}

function leaveReview(content) {
  if (content?.classes) state.classes = content.classes;
  state.back = false;
  $("do-back").hidden = true;
  state.item = null;
  select("review");
}

/* ---- classes and history ---- */

function drawClassTable() {
  $("class-table").replaceChildren(...state.classes.map((c) => {
    const name = el("input", { value: c.name, maxlength: "80", "aria-label": `New name of ${c.name}` });
    const into = el("select", { "aria-label": `Merge ${c.name} into` });
    fillSelect(into, state.classes.filter((other) => other.id !== c.id), "merge into…");
    const facts = `${c.labels} label${c.labels === 1 ? "" : "s"}${c.share === null ? "" : `, about ${percent(c.share)} of all`}`;
    return el("div", { class: "class-row" }, el("b", {}, c.name), el("span", { class: "note" }, facts),
      el("div", { class: "controls" }, name,
        el("button", { "aria-label": `Rename ${c.name}`, onclick: () => change({ do: "rename", class_id: c.id, name: name.value }) }, "Rename"), into,
        el("button", { "aria-label": `Merge ${c.name}`, onclick: () => into.value && change({ do: "merge", class_id: c.id, into: into.value }) }, "Merge")));
  }));
  drawHistory();
}

async function drawHistory() {
  const asked = {};
  state.history = asked;
  const { entries } = await call("api/history");
  if (state.history === asked) $("history").replaceChildren(...entries.map(historyRow)); // unless asked for again meanwhile
}

function historyRow(entry) {
  const words = {
    label: `${entry.count > 1 ? `${entry.count} images: ` : ""}${entry.name}`, none: "none of these", skip: "skipped",
    class: `new class ${entry.name}`, rename: `renamed to ${entry.name}`, merge: `merged into ${entry.into}`,
  }[entry.do];
  const picture = entry.number === null
    ? el("span", { class: "many", "aria-hidden": "true" }, entry.count > 1 ? `×${entry.count}` : "·")
    : el("img", { src: source({ number: entry.number, stamp: "" }, "thumb"), alt: "", loading: "lazy" });
  const when = new Date(entry.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return el("li", {}, picture,
    el("span", {}, words, " ", el("small", {}, `${when}, ${entry.who}${entry.why === "audit" ? ", random check" : ""}`)),
    el("button", { "aria-label": `Undo: ${words}`, onclick: async () => { await undo(entry.key); drawClassTable(); } }, "Undo"));
}

function change(body) {
  exclusively(async () => {
    // The history is not waited for: the table can be used again at once, and no click on it may be passed over.
    try { state.classes = (await send("api/class", body)).classes; } finally { drawClassTable(); }
    say("Saved.");
  });
}

/* ---- the bar, and when to stop ---- */

function drawStatus() {
  const s = state.status;
  state.classes = s.classes;
  $("folder").textContent = s.folder;
  $("total").textContent = `${s.images.toLocaleString()} images`;
  $("fact-labels").textContent = s.labels.toLocaleString();
  $("note-labels").textContent = [s.unsure !== null && `unsure of ${s.unsure.toLocaleString()}`, s.none && `${s.none} none`, s.skipped && `${s.skipped} skipped`].filter(Boolean).join(", ");
  $("fact-coverage").textContent = percent(s.coverage);
  $("meter-coverage").style.width = width(s.coverage);
  drawAudit(s.audit);
  drawShares(s.classes);
  $("seeing").hidden = s.features >= s.images;
  $("seeing-text").textContent = `${s.features.toLocaleString()} of ${s.images.toLocaleString()} images looked at; questions get better as more arrive`;
  $("seeing-bar").value = s.images ? s.features / s.images : 0;
  $("class-names").replaceChildren(...s.classes.map((c) => el("option", { value: c.name })));
  if (s.trouble) banner(`Labelling works, but the model does not: ${s.trouble}`, true);
  else if ($("banner").className === "mild") banner("");
  if (state.view === "finish") drawFinish();
  if (state.view === "label") { drawClasses(); refreshRanking(); }
}

function drawAudit(audit) {
  $("fact-audit").textContent = audit.asked ? percent(audit.share) : "–";
  $("note-audit").textContent = audit.asked ? `${percent(audit.low)} to ${percent(audit.high)}, ${audit.asked} random` : "after the first random checks";
  $("range").hidden = !audit.asked;
  $("range-band").style.left = width(audit.low);
  $("range-band").style.width = width(audit.high - audit.low);
  $("range-point").style.left = width(audit.share ?? 0);
}

function drawShares(classes) {
  const shown = classes.filter((c) => c.share > 0.001);
  $("shares").setAttribute("aria-label", shown.map((c) => `${c.name} ${percent(c.share)}`).join(", ") || "none yet");
  $("shares").replaceChildren(...shown.map((c) => {
    const part = el("span", { title: `${c.name}: ${percent(c.share, 1)}` }, `${c.name} ${percent(c.share)}`);
    part.style.width = width(c.share);
    part.style.background = COLOURS[classes.indexOf(c) % COLOURS.length];
    return part;
  }));
}

/* The model has learnt while the image was looked at: its suggestion follows, unless it must not be seen. */
async function refreshRanking() {
  const item = state.item;
  if (!item || item.why === "audit" || state.status.round === state.round || $("entry").value) return;
  state.round = state.status.round;
  const fresh = await call(`api/item?number=${item.number}`);
  if (state.item === item) { item.ranking = fresh.ranking; drawClasses(); }
}

function drawFinish() {
  const { advice, run, remarks } = state.status;
  $("verdict").textContent = advice.verdict;
  $("verdict").className = `verdict ${advice.level}`;
  $("signs").replaceChildren(...advice.signs.map((sign) => el("li", { class: sign.met ? "met" : "" }, el("b", {}, sign.name), el("span", {}, sign.text))));
  $("remarks").replaceChildren(...remarks.map((text) => el("li", {}, text)));
  $("run-start").disabled = run.state === "running";
  $("run-stop").hidden = run.state !== "running";
  $("run").replaceChildren(...runNodes(run));
}

function runNodes(run) {
  if (run.state === "none") return [];
  if (run.state === "running") return [el("p", {}, `Running for ${run.seconds} s`), el("pre", {}, run.said.join("\n"))];
  if (run.state === "stopped") return [el("p", {}, "Stopped.")];
  if (run.state === "failed") return [el("p", {}, "The run failed:"), el("pre", {}, run.said.join("\n"))];
  const titles = { report: "Open the report", labels: "Download labels.csv of all images", model: "Download the model" };
  const links = run.files.map((name) => el("li", {}, el("a", { href: `run/${name}?token=${encodeURIComponent(TOKEN)}`, target: "_blank", rel: "noreferrer" }, titles[name])));
  const checked = run.result.cross_check;
  return [el("p", {}, "Done: ", el("code", {}, run.folder)), el("ul", {}, ...links), ...exportNodes(run.exports),
    checked ? el("p", { class: "hint" }, `Of ${checked.held_out} labels that were held out in turn, ${checked.found} were found again.`) : null].filter(Boolean);
}

function exportNodes(exports) {
  const made = Object.entries(exports).filter(([, one]) => one.folder);
  const problem = Object.values(exports).find((one) => one.problem)?.problem;
  const titles = { folders: "One folder per class", huggingface: "Hugging Face", "label-studio": "Label Studio", fiftyone: "FiftyOne" };
  if (!made.length) return problem ? [el("p", { class: "hint" }, `No exports: ${problem}`)] : [];
  return [el("p", {}, `Exports of the ${made[0][1].images.toLocaleString()} labels that can be taken as they are:`),
    el("ul", { class: "exports" }, ...made.map(([name, one]) => el("li", {}, `${titles[name] ?? name}: `, el("code", {}, one.folder))))];
}

async function poll() {
  try {
    state.status = await call("api/status");
    if (state.away) { state.away = false; if (!state.busy) banner(""); }
    drawStatus();
    if (!state.item && state.view === "label" && !state.back) fetchNext();
  } catch (error) {
    state.away = true;
    if (!state.busy) banner(error instanceof Refused ? error.message : "The server does not answer. Answers are safe; start `protocon label` again to continue.");
  }
  setTimeout(poll, document.hidden ? 5000 : state.status?.learning || !state.item ? 500 : 1500);
}

/* ---- views and keys ---- */

function select(view, fetchToo = true) {
  if (view !== "label" && state.back && view !== "review") leaveReview();
  state.view = view;
  for (const tab of $("views").children) {
    const on = tab.id === `tab-${view}`;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !on;
  }
  if (view === "label" && fetchToo && !state.item) fetchNext();
  if (view === "grid") fetchGroup();
  if (view === "review") fetchReview();
  if (view === "classes") drawClassTable();
  if (view === "finish" && state.status) drawFinish();
}

function entryKey(event) {
  const list = options(), typed = $("entry").value.trim();
  if (event.key === "Enter") {
    event.preventDefault();
    if (typed) { if (list[state.active]) answer(list[state.active]); } else if (suggestion()) answer(suggestion());
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    state.active = (state.active + (event.key === "ArrowDown" ? 1 : -1) + list.length) % Math.max(1, list.length);
    drawClasses();
  } else if (event.key === "Escape") {
    $("entry").value = "";
    $("entry").blur();
    drawClasses();
  } else if (!typed) labelKey(event);
}

function labelKey(event) {
  const { key } = event;
  if (/^[1-9]$/.test(key) && state.classes[Number(key) - 1]) answer(state.classes[Number(key) - 1]);
  else if (key === "0") answer(null, "none");
  else if (key === " ") answer(null, "skip");
  else if (key === "Backspace") undo();
  else if (key === "+" || key === "=") zoom(!zoomed());
  else if (key === "Escape") { if (zoomed()) zoom(false); else if (state.back) leaveReview(); }
  else if (key === "Enter" && suggestion()) answer(suggestion());
  else return;
  event.preventDefault();
}

function gridKey(event) {
  if (event.key === "Enter") { event.preventDefault(); acceptGroup(); }
  else if (event.target.id === "grid-class") return;
  else if (event.key.startsWith("Arrow")) { event.preventDefault(); moveInGrid(event.key); }
  else if (event.key === ".") { state.groupSkip += 1; fetchGroup(); }
  else if (event.key === "Backspace") undo().then(fetchGroup);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  if (target.id === "entry") { entryKey(event); return; }
  if (target.getAttribute?.("role") === "tab") { tabKey(event); return; }
  const button = target.closest?.("button, a, select, input");
  if (state.view === "grid") { if (!button || target.classList.contains("tile") || target.id === "grid-class") gridKey(event); return; }
  if (state.view !== "label" || (button && (event.key === "Enter" || event.key === " "))) return;
  if (/^\p{L}$/u.test(event.key)) { $("entry").focus(); return; }
  labelKey(event);
});

function tabKey(event) {
  const tabs = [...$("views").children], at = tabs.indexOf(event.target);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) { if (state.view === "label" && event.key !== "Enter" && event.key !== " ") labelKey(event); return; }
  const next = tabs[(at + step + tabs.length) % tabs.length];
  select(next.id.slice(4));
  next.focus();
}

for (const tab of $("views").children) tab.addEventListener("click", () => select(tab.id.slice(4)));
$("entry").addEventListener("input", () => { state.active = 0; drawClasses(); });
$("do-none").addEventListener("click", () => answer(null, "none"));
$("do-skip").addEventListener("click", () => answer(null, "skip"));
$("do-undo").addEventListener("click", () => undo());
$("do-zoom").addEventListener("click", () => zoom(!zoomed()));
$("do-back").addEventListener("click", () => leaveReview());
$("picture").addEventListener("click", () => zoom(!zoomed()));
$("picture").addEventListener("load", () => $("picture").classList.toggle("small", $("picture").naturalWidth <= 128));
$("picture").addEventListener("error", () => { if (state.item) { $("picture").hidden = true; $("empty").hidden = false; $("empty").textContent = "This file cannot be shown: damaged, or not an image after all. Skip it."; } });
$("grid-accept").addEventListener("click", acceptGroup);
$("grid-other").addEventListener("click", () => { state.groupSkip += 1; fetchGroup(); });
$("review-class").addEventListener("change", () => fetchReview());
$("review-order").addEventListener("change", () => fetchReview());
$("review-more").addEventListener("click", () => fetchReview(true));
$("new-class").addEventListener("submit", (event) => { event.preventDefault(); change({ do: "class", name: $("new-name").value }); $("new-name").value = ""; });
$("run-start").addEventListener("click", () => exclusively(async () => { state.status.run = (await send("api/run", { do: "start" })).run; drawFinish(); }));
$("run-stop").addEventListener("click", () => exclusively(async () => { state.status.run = (await send("api/run", { do: "stop" })).run; drawFinish(); }));

poll();
