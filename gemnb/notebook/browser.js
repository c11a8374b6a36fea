// Draws the state of SessionBrowser and sends what a person does. Words of sessions are text; `preview.talk` is the
// only HTML, and Python made it safe.
const ROW = 46; // pixels, as in browser.css
const AHEAD = 6; // rows drawn beyond the visible ones
const PAUSE = 20; // milliseconds after the last letter before a search begins

const KEYS = {
  Enter: "resume", f: "fork", x: "delete", X: "delete", Delete: "delete", s: "sort", r: "reverse", a: "all",
  w: "worktrees", h: "hidden", "/": "search", Escape: "close", q: "close", "?": "help",
};
const STEPS = {
  ArrowUp: () => -1, ArrowDown: () => 1, k: () => -1, j: () => 1, u: (page) => -Math.ceil(page / 2),
  d: (page) => Math.ceil(page / 2), PageUp: (page) => -page, PageDown: (page) => page,
  Home: () => -Infinity, End: () => Infinity, g: () => -Infinity, G: () => Infinity,
};
const BUTTONS = [
  ["resume", "Resume", "Go on with it (Enter)"], ["fork", "Fork", "Go on in a copy (f)"],
  ["delete", "Delete", "Move it to the trash (x)"], ["sort", "Sort", "Order by date, messages, name, tokens (s)"],
  ["reverse", "Reverse", "Turn the order round (r)"], ["all", "All projects", "Sessions of every project (a)"],
  ["worktrees", "Worktrees", "Sessions of this repository's worktrees (w)"],
  ["hidden", "Hidden", "What a list does not show, and why (h)"], ["search", "Search", "Look into everything said (/)"],
  ["help", "?", "The keys (?)"], ["close", "Close", "Close the browser (Esc, q)"],
];
const HELP = [
  ["↑ ↓  k j", "move"], ["PageUp PageDown  u d", "a page, half a page"], ["Home End  g G", "first, last"],
  ["/", "search ids, titles and everything said; Esc leaves it"], ["Enter", "resume"], ["f", "fork: go on in a copy"],
  ["x X", "delete, after a question"], ["s r", "sort, reverse"], ["a w", "all projects, worktrees"],
  ["h", "show what is hidden"], ["Esc q", "close"], ["?", "these keys"],
];

/** An element with attributes and children; strings become text. */
function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

/** Whether a key is the browser's: chords and Shift+Enter stay with the application. */
function isOurs(event) {
  return !(event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === "Enter"));
}

/** The words below a title: what a search found in it, else its age and what there is to know of it. */
function details(row) {
  const told = node("span", { class: "gemnb-details" });
  if (row.match) {
    const [before, match, after] = row.match;
    told.append(`${row.matches} × …${before}`, node("mark", {}, match), `${after}…`);
    return told;
  }
  const words = [row.age, `${row.messages} messages`];
  if (row.tokens !== undefined) words.push(`${row.tokens.toLocaleString("en")} tokens`);
  if (row.project) words.push(row.project);
  told.append([...words.filter(Boolean), ...(row.marks ?? [])].join(" · "));
  return told;
}

/** One row of the list; what is empty is not in `row`. */
function option(row, { id, place, count, selected }) {
  const badges = [row.current && "current", row.live && "live", row.hidden && "hidden"].filter(Boolean);
  const made = node(
    "div",
    { role: "option", id, "data-id": row.id, "aria-selected": String(selected), "aria-posinset": String(place + 1),
      "aria-setsize": String(count), class: "gemnb-row", dir: "auto" },
    node("span", { class: "gemnb-number" }, row.number ? String(row.number) : "–"),
    node("span", { class: "gemnb-title" }, row.title, ...badges.map((badge) => node("span", { class: "gemnb-badge" }, badge))),
    details(row),
  );
  made.style.top = `${place * ROW}px`;
  return made;
}

/** `words` with its back-quoted parts as code. */
function withCode(words) {
  return words.split("`").map((piece, place) => (place % 2 ? node("code", {}, piece) : piece));
}

function render({ model, el }) {
  const uid = `gemnb-${Math.random().toString(36).slice(2, 10)}`;
  const spacer = node("div", { class: "gemnb-spacer" });
  const list = node("div", { role: "listbox", tabindex: "0", "aria-label": "Sessions", class: "gemnb-list" }, spacer);
  const search = node("input", { type: "search", placeholder: "Search everything said (/)", "aria-label": "Search sessions",
    autocomplete: "off", spellcheck: "false" });
  const status = node("div", { role: "status", "aria-live": "polite", class: "gemnb-status" });
  const preview = node("div", { role: "region", tabindex: "0", "aria-label": "Preview", class: "gemnb-preview" });
  const buttons = BUTTONS.map(([action, label, title]) => node("button", { type: "button", "data-action": action, title }, label));
  const question = node("div", { role: "alertdialog", "aria-label": "Delete this session?", class: "gemnb-question" });
  const help = node("dl", { class: "gemnb-help" }, ...HELP.flatMap(([keys, does]) => [node("dt", {}, keys), node("dd", {}, does)]));
  help.hidden = true;
  const root = node("div", { class: "gemnb-browser" },
    node("div", { class: "gemnb-bar" }, search, ...buttons), question,
    node("div", { class: "gemnb-panes" }, list, preview), help, status);
  el.append(root);

  const rows = () => model.get("rows");
  const place = () => Math.max(0, rows().findIndex((row) => row.id === model.get("selected")));
  const page = () => Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const send = (action) => model.send({ do: action, id: action === "confirm" ? model.get("asking") : model.get("selected") });
  const change = (name, value) => { model.set(name, value); model.save_changes(); };

  function drawRows() {
    const all = rows();
    const chosen = place();
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - AHEAD);
    const last = Math.min(all.length, Math.ceil((list.scrollTop + (list.clientHeight || 400)) / ROW) + AHEAD);
    spacer.style.height = `${all.length * ROW}px`;
    const drawn = [];
    for (let at = first; at < last; at += 1) {
      drawn.push(option(all[at], { id: `${uid}-${at}`, place: at, count: all.length, selected: at === chosen }));
    }
    const empty = node("p", { class: "gemnb-empty" }, model.get("query") ? "Nothing is found." : "No sessions yet.");
    list.replaceChildren(spacer, ...(all.length ? drawn : [empty]));
    const isDrawn = first <= chosen && chosen < last;
    if (isDrawn) list.setAttribute("aria-activedescendant", `${uid}-${chosen}`);
    else list.removeAttribute("aria-activedescendant");
  }

  let wasInView = true;
  function reveal() {
    const top = place() * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    wasInView = true;
    drawRows();
  }

  // New rows follow the selection, unless the person has scrolled away from it.
  function isInView() {
    const top = place() * ROW;
    return top + ROW > list.scrollTop && top < list.scrollTop + list.clientHeight;
  }
  function redraw() {
    if (wasInView) reveal();
    else drawRows();
  }

  function drawPreview() {
    const told = model.get("preview");
    if (!told || !told.title) { preview.replaceChildren(); return; }
    const facts = node("dl", { class: "gemnb-facts" },
      ...told.facts.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)]));
    const talk = (told.talk || []).map((html) => {
      const entry = node("article", { dir: "auto" });
      entry.innerHTML = html;
      for (const link of entry.querySelectorAll("a[href]")) { link.target = "_blank"; link.rel = "noopener noreferrer"; }
      return entry;
    });
    const more = told.more ? node("button", { type: "button", "data-action": "more" }, `${told.more} more messages`) : null;
    const pictures = told.pictures ? node("button", { type: "button", "data-action": "pictures" }, `Show ${told.pictures} pictures`) : null;
    const same = preview.dataset.id === told.id;
    const scrolled = preview.scrollTop;
    preview.replaceChildren(...[node("h3", { dir: "auto" }, told.title), facts, pictures, ...talk, more].filter(Boolean));
    preview.dataset.id = told.id;
    preview.scrollTop = same ? scrolled : 0;
  }

  function drawBar() {
    const pressed = { all: "everywhere", worktrees: "worktrees", hidden: "hidden", reverse: "reverse" };
    for (const button of buttons) {
      const name = pressed[button.dataset.action];
      if (name) button.setAttribute("aria-pressed", String(model.get(name)));
      if (button.dataset.action === "sort") button.textContent = `Sort: ${model.get("sort")}`;
    }
    if (document.activeElement !== search) search.value = model.get("query");
    const count = rows().length;
    status.replaceChildren(...withCode(`${count} session${count === 1 ? "" : "s"}. ${model.get("status")}`));
  }

  function drawQuestion() {
    const asked = rows().find((row) => row.id === model.get("asking"));
    question.hidden = !asked;
    if (!asked) return;
    question.replaceChildren(node("span", { dir: "auto" }, `Delete “${asked.title}”? It can be brought back.`),
      node("button", { type: "button", "data-action": "confirm" }, "Delete (y)"),
      node("button", { type: "button", "data-action": "cancel" }, "Keep (n)"));
    if (root.contains(document.activeElement)) question.lastChild.focus();
  }

  function drawCard() {
    const card = model.get("card");
    if (!card || !card.title) return;
    root.replaceChildren(node("div", { class: "gemnb-card", dir: "auto" }, node("strong", {}, ...withCode(card.title)),
      card.id ? node("code", {}, card.id) : "", card.how ? node("span", {}, ...withCode(card.how)) : ""));
  }

  function act(action) {
    if (action === "search") search.focus();
    else if (action === "help") help.hidden = !help.hidden;
    else if (action) send(action);
    if (action === "close" || action === "resume") el.closest?.(".jp-Cell")?.focus({ preventScroll: true });
  }

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const to = Math.max(0, Math.min(all.length - 1, place() + step));
    change("selected", all[to].id);
  }

  let timer;
  function look() {
    clearTimeout(timer);
    timer = setTimeout(() => change("query", search.value), PAUSE);
  }

  function onListKey(event) {
    if (STEPS[event.key]) move(STEPS[event.key](page()));
    else if (KEYS[event.key]) act(KEYS[event.key]);
    else return;
    event.preventDefault();
  }

  function onSearchKey(event) {
    if (event.isComposing) return;
    if (event.key === "Escape") { clearTimeout(timer); search.value = ""; change("query", ""); list.focus(); }
    else if (event.key === "ArrowDown" || event.key === "Enter") { clearTimeout(timer); change("query", search.value); list.focus(); }
    else return;
    event.preventDefault();
  }

  function onQuestionKey(event) {
    if (event.key === "y") send("confirm");
    else if (event.key === "n" || event.key === "Escape") send("cancel");
    else return;
    event.preventDefault();
    list.focus();
  }

  function onKey(event) {
    if (event.key !== "Shift") cellBefore = null;
    if (!isOurs(event)) return;
    event.stopPropagation();
    if (question.contains(event.target)) onQuestionKey(event);
    else if (event.target === search) onSearchKey(event);
    else if (event.target === list) onListKey(event);
    else if (event.key === "Escape") list.focus();
  }

  // The cell that had the keys when the browser was given them; null once it was used.
  let cellBefore = null;

  // The application must not see our keys. Notebook 7 listens on the document in the capture phase, so only a listener
  // on the window comes first, and only an attribute on the focused element itself makes both applications pass it by.
  const guard = (event) => {
    if (!root.contains(event.target)) return;
    // Who runs a notebook cell by cell meets the browser on the way: Shift+Enter then goes on, and does not run it again.
    if (event.shiftKey && event.key === "Enter") cellBefore?.focus({ preventScroll: true });
    event.target.toggleAttribute("data-lm-suppress-shortcuts", isOurs(event));
  };

  root.addEventListener("keydown", onKey);
  root.addEventListener("pointerdown", () => { cellBefore = null; });
  root.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-action]");
    const row = event.target.closest?.("[role=option]");
    if (button) { act(button.dataset.action); if (["confirm", "cancel"].includes(button.dataset.action)) list.focus(); }
    else if (row) {
      change("selected", row.dataset.id);
      list.focus({ preventScroll: true });
      if (event.detail === 2) act("resume"); // no `dblclick` comes, since the row was drawn anew in between
    }
  });
  list.addEventListener("scroll", () => { wasInView = isInView(); drawRows(); }, { passive: true });
  search.addEventListener("input", look);
  window.addEventListener("keydown", guard, { capture: true });

  const drawings = [
    ["change:rows", redraw], ["change:selected", reveal], ["change:preview", drawPreview], ["change:asking", drawQuestion],
    ["change:card", drawCard], ...["rows", "query", "sort", "reverse", "everywhere", "worktrees", "hidden", "status"].map((name) => [`change:${name}`, drawBar]),
  ];
  for (const [event, draw] of drawings) model.on(event, draw);
  // Only a live kernel answers `ready`, and only once: a page that is loaded again, someone typing, or who was faster
  // than the answer and is in here already, keeps the focus.
  const onMessage = (message) => {
    const typed = document.activeElement?.closest?.(".cm-content")?.textContent;
    if (message.do !== "focus" || typed || root.contains(document.activeElement)) return;
    cellBefore = el.closest?.(".jp-Notebook")?.querySelector(".jp-Cell.jp-mod-active") ?? null;
    list.focus({ preventScroll: true });
  };
  model.on("msg:custom", onMessage);
  drawBar(); drawPreview(); drawQuestion(); reveal(); drawCard();
  // `el` may still be outside the page, where nothing has a height: place the scroll once it has one.
  const sized = new ResizeObserver(() => { if (list.clientHeight) reveal(); });
  sized.observe(list);
  model.send({ do: "ready" });
  return () => {
    clearTimeout(timer);
    sized.disconnect();
    window.removeEventListener("keydown", guard, { capture: true });
    for (const [event, draw] of drawings) model.off(event, draw);
    model.off("msg:custom", onMessage);
  };
}

export default { render };
export { details, isOurs, option };
