// The page: what is shown where, keys, links, files.

/** Lists follow what comes at most this often, in milliseconds. */
const REPAINT = 100;
/** How many lines are put together at once. */
const BATCH = 500;

let isDue = false;
const model = new Model(() => {
  if (isDue) return;
  isDue = true;
  setTimeout(() => requestAnimationFrame(() => {
    isDue = false;
    refresh();
  }), REPAINT);
});
const detail = get("detail");
const bars = new Bars();
const entered = () => detail.focus();
const chosen = (item) => choose(item.n, false);
const lists = {
  frames: new List(get("frames"), "Frames", { draw: drawFrame, chosen, entered }),
  problems: new List(get("problems"), "Problems", { draw: drawFrame, chosen, entered }),
  calls: new List(get("calls"), "Calls", { draw: (call, row) => bars.draw(call, row), chosen, entered }),
};
lists.calls.before = (calls) => bars.fit(calls, model.rows.at(-1)?.at ?? 0);
const tabs = ["frames", "problems", "calls", "faults"];
let view = "frames";
let selected = null;
let source = null;
/** What is known of the recording: its name, its header. */
let about = {};

const count = (number) => number.toLocaleString("en");
/** A number of things: `1 frame`, `2 frames`. */
const countOf = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;

function refresh() {
  const { frames, problems, calls } = model.lists;
  setText(get("tab-frames"), `Frames ${count(frames.length)}`);
  setText(get("tab-problems"), `Problems ${count(problems.length)}`);
  setText(get("tab-calls"), `Calls ${count(calls.length)}`);
  get("tab-problems").classList.toggle("some", problems.length > 0);
  get("next").disabled = get("previous").disabled = problems.length === 0;
  if (lists[view]) lists[view].show(model.lists[view]);
  if (about.live) {
    const pending = [...model.open.values()].reduce((sum, open) => sum + open.size, 0);
    if (pending !== about.pending) tell({ pending });
  }
}

/** Says what is shown, as far as it has changed. */
function tell(news) {
  about = { ...about, ...news };
  const { error, name, live, complete, pending } = about;
  const problems = model.problems === 0 ? "no problems" : countOf(model.problems, "problem");
  const parts = [countOf(model.rows.length, "frame")];
  if (!complete) parts.push(problems);
  if (pending > 0 && !complete) parts.push(`${countOf(pending, "call")} pending`);
  if (model.dropped > 0) parts.push(`${countOf(model.dropped, "frame")} behind the first ${count(FIRST_ROWS)} left out`);
  setText(get("counts"), parts.join(" · "));
  // What is read out changes seldom.
  let state = "Loading";
  if (complete) state = live ? `Ended, ${problems}` : problems;
  if (complete && !name) state = "Drop a recording here, or open one";
  else if (live) state = source?.isPaused ? "Paused" : "Live";
  setText(get("status"), error ? printable(error) : state);
  const title = name || "Frames on the wire";
  setText(get("name"), printable(title));
  document.title = title;
  if (news.faults !== undefined) showFaults(news.faults);
  lists.frames.live = lists.problems.live = lists.calls.live = live && !complete;
}

/** What a source tells. */
function told(news) {
  const wasComplete = about.complete;
  get("pause").hidden = !(news.live ?? about.live);
  get("open").hidden = isOffline || !get("pause").hidden;
  const { rows, more, ...rest } = news;
  tell({ error: undefined, ...rest });
  if (!wasComplete && about.complete) {
    refresh();
    arrive();
  }
}

/** Goes to the frame of the link, or else to the first problem. */
function arrive() {
  if (selected !== null || follow()) return;
  const first = model.lists.problems[0];
  if (!first || about.live) return;
  showView("problems");
  choose(first.n, false);
}

function follow() {
  const found = /^#frame-(\d+)$/.exec(location.hash);
  return found !== null && choose(Number(found[1]), true);
}

function showView(name, focuses = false) {
  view = name;
  for (const tab of tabs) {
    const button = get(`tab-${tab}`);
    button.ariaSelected = String(tab === name);
    button.tabIndex = tab === name ? 0 : -1;
    get(tab).hidden = tab !== name;
  }
  if (focuses) get(`tab-${name}`).focus();
  refresh();
  lists[name]?.select(selected);
}

/** Selects the frame of a line, and shows what is in it. Returns whether there is one. */
function choose(n, goes) {
  const row = model.find(n);
  if (!row) return false;
  selected = n;
  history.replaceState(null, "", `#frame-${n}`);
  // Where the current list does not have it, the list of all frames may.
  const list = model.lists[view];
  if (goes && list?.[placeOf(list, n)]?.n !== n) {
    if (!model.fits(row)) {
      get("filter").value = "";
      model.filter("").then(() => choose(n, true));
    }
    showView("frames");
  }
  lists[view]?.select(n);
  showDetail(detail, row, model.calls.get(n), (to) => choose(to, true));
  return true;
}

function problem(step) {
  const list = model.lists.problems;
  const at = selected === null ? (step > 0 ? -1 : list.length) : placeOf(list, selected);
  const isOne = list[at]?.n === selected;
  const to = list[at + (step > 0 ? (isOne || selected === null ? 1 : 0) : -1)] ?? list[step > 0 ? 0 : list.length - 1];
  if (to) choose(to.n, true);
}

function begin(next) {
  if (source) source.isOver = true;
  model.clear();
  selected = null;
  about = { name: undefined };
  detail.replaceChildren(make("p", "small", "Select a frame to see what is in it."));
  for (const list of Object.values(lists)) Object.assign(list, { selected: null, follows: true });
  source = next;
  tell({});
  source.run();
}

async function openFile(file) {
  if (!file) return;
  if (isOffline || about.live) return tell({ error: "switchboard wire page opens other recordings, this page does not." });
  tell({ error: undefined, name: file.name, complete: false });
  try {
    await post(`/open?${encodeURIComponent(file.name)}`, file);
  } catch (error) {
    return tell({ error: `${file.name} cannot be opened: ${error.message}`, complete: true });
  }
  history.replaceState(null, "", location.pathname);
  begin(new Live(model, told));
  showView("frames");
}

// --- files that go out ----------------------------------------------------------------------------

function download(href, name) {
  Object.assign(make("a"), { href, download: name }).click();
}

const stem = () => (about.name ?? "run").replace(/^.*[/\\]/, "").replace(/\.(jsonl|html)$/, "").replace(/[^\w.-]+/g, "_") || "run";

/** The frames that are shown, as a recording. */
async function exportFrames() {
  const blobs = [];
  const lines = [`${JSON.stringify({ ...about.header, transcript: 1 })}\n`];
  const rows = model.lists.frames.filter((row) => row.entry !== "bad");
  await inSlices(rows, ({ at, conn, dir, entry, code, data }) => {
    const count = lines.push(`${JSON.stringify({ at, conn, dir, kind: entry, code, data })}\n`);
    if (count === BATCH) blobs.push(new Blob(lines.splice(0)));
  });
  const url = URL.createObjectURL(new Blob([...blobs, ...lines], { type: "application/x-ndjson" }));
  download(url, `${stem()}.jsonl`);
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// --- what the user does ---------------------------------------------------------------------------

let typing = 0;
get("filter").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => model.filter(get("filter").value).then(() => lists[view]?.select(selected)), 150);
});
get("search").addEventListener("submit", (event) => event.preventDefault());
get("next").addEventListener("click", () => problem(1));
get("previous").addEventListener("click", () => problem(-1));
get("tabs").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) showView(tab.id.slice(4));
});
get("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step === undefined) return;
  const there = tabs.filter((tab) => !get(`tab-${tab}`).hidden);
  showView(there.at((there.indexOf(view) + step) % there.length), true);
});
get("pause").addEventListener("click", () => {
  source.isPaused = !source.isPaused;
  get("pause").ariaPressed = String(source.isPaused);
  tell({});
});
get("export").addEventListener("click", exportFrames);
get("save").addEventListener("click", () => download("/recording.html", `${stem()}.html`));
get("open").addEventListener("click", () => get("file").click());
get("file").addEventListener("change", (event) => openFile(event.target.files[0]));
document.addEventListener("keydown", (event) => {
  const isText = event.target.matches("input:not([type=checkbox]), textarea");
  if (isText || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "n") problem(1);
  else if (event.key === "p") problem(-1);
  else if (event.key === "/") get("filter").focus();
  else return;
  event.preventDefault();
});
addEventListener("hashchange", follow);
for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    get("drop").hidden = false;
  });
}
addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) get("drop").hidden = true;
});
addEventListener("drop", (event) => {
  event.preventDefault();
  get("drop").hidden = true;
  openFile(event.dataTransfer?.files[0]);
});

const inlined = [...document.querySelectorAll("script.recording")];
const isOffline = inlined.length > 0;
get("save").hidden = isOffline;
if (isOffline) {
  begin(new Inlined(model, told, inlined));
} else {
  begin(new Live(model, told));
}
