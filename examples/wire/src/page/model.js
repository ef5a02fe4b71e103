// The frames that the page has: the last ones, their calls, what went wrong, and what the filter lets through.

const MAX_ROWS = 100000;
/** So many frames from the beginning stay. */
const FIRST_ROWS = 1000;
const MAX_BYTES = 256 * 1024 * 1024;
/** How long a task may work before others have their turn, in milliseconds. */
const SLICE = 12;

/** Lets others have their turn, and is over soon. */
const turn = () => new Promise((then) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    then();
  };
  port2.postMessage(0);
});

/** Calls `act` for each item in short tasks, until `goes()` is false. Returns whether it came to the end. */
async function inSlices(items, act, goes = () => true) {
  let end = performance.now() + SLICE;
  let count = 0;
  for (const item of items) {
    act(item);
    if ((++count & 15) === 0 && performance.now() > end) {
      await turn();
      if (!goes()) return false;
      end = performance.now() + SLICE;
    }
  }
  return goes();
}

/** The place of the first item that is not before line `n`. */
function placeOf(items, n) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].n < n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What frames have to be: see the help of the page. Returns a function of a frame. */
function filter(text) {
  const terms = text.split(/\s+/).filter((word) => word !== "").slice(0, 32).map((word) => {
    const wanted = !(word.length > 1 && word.startsWith("-"));
    const fits = term(wanted ? word : word.slice(1));
    return (row) => fits(row) === wanted;
  });
  return (row) => terms.every((fits) => fits(row));
}

function term(word) {
  const colon = word.indexOf(":");
  const value = word.slice(colon + 1);
  switch (colon < 0 ? "" : word.slice(0, colon)) {
    case "kind": {
      const kind = value.toLowerCase();
      const start = kind.endsWith("*") ? kind.slice(0, -1) : null;
      return (row) => (start === null ? row.kind.toLowerCase() === kind : row.kind.toLowerCase().startsWith(start));
    }
    case "id": return (row) => row.call === value;
    case "dir": return (row) => row.dir === value;
    case "conn": return (row) => String(row.conn) === value;
    case "is":
      if (value === "error") return (row) => row.problem !== undefined;
      if (value === "unknown") return isUnknown;
      if (value === "call") return (row) => row.asks === true;
  }
  const part = word.toLowerCase();
  const has = (text) => text !== undefined && text.toLowerCase().includes(part);
  return (row) => has(row.kind) || has(row.words) || has(row.data) || has(row.problem);
}

const isUnknown = (row) => row.unknown_kind === true || row.unknown !== undefined;

/** Frames in order, those before `start` forgotten. Removing from the front costs nothing most of the time. */
class Model {
  /** `changed` is called when there is something else to see. */
  constructor(changed) {
    this.changed = changed;
    this.clear();
  }

  clear() {
    this.rows = [];
    this.calls = new Map();
    this.open = new Map();
    this.bytes = 0;
    this.dropped = 0;
    this.lists = { frames: [], problems: [], calls: [] };
    this.problems = 0;
    this.age = (this.age ?? 0) + 1;
    this.fits ??= () => true;
    this.changed();
  }

  /** One thing at a time. */
  next(act) {
    const done = (this.queue ?? Promise.resolve()).then(act);
    this.queue = done.catch(() => {});
    return done;
  }

  /** Adds frames in short tasks. */
  add(rows) {
    const age = this.age;
    return this.next(async () => {
      if (await inSlices(rows, (row) => this.push(row), () => age === this.age)) this.trim();
    });
  }

  push(row) {
    this.rows.push(row);
    this.bytes += size(row);
    if (row.problem !== undefined) this.problems++;
    if (row.entry === "close" || row.entry === "eof") this.giveUp([row.conn]);
    else if (row.asks) this.ask(row);
    else if (row.answers) this.answer(row);
    if (this.fits(row)) this.list(row);
    this.changed();
  }

  list(row) {
    this.lists.frames.push(row);
    if (row.problem !== undefined) this.lists.problems.push(row);
    const call = this.calls.get(row.n);
    if (call) this.lists.calls.push(call);
  }

  ask(row) {
    const open = this.open.get(row.conn) ?? new Map();
    this.open.set(row.conn, open);
    const name = `${row.dir} ${row.kind} ${row.call}`;
    const before = open.get(name);
    // Where there are no ids, the next request takes the place of one that runs.
    if (before) before.state = "done";
    const call = { n: row.n, row, name, at: row.at, first: null, last: null, lines: [], state: "pending" };
    open.delete(name);
    open.set(name, call);
    this.calls.set(row.n, call);
  }

  answer(row) {
    const call = this.calls.get(row.answers.line);
    if (!call) return;
    call.first ??= row.at;
    call.last = row.at;
    call.lines.push(row.n);
    if (call.state === "pending" && !row.partial) call.state = "done";
    if (row.failed) call.state = "failed";
    const open = this.open.get(row.conn);
    if (call.state !== "pending" && open?.get(call.name) === call) open.delete(call.name);
  }

  giveUp(conns) {
    const list = this.lists.problems;
    const before = list.length;
    for (const conn of conns) {
      for (const call of this.open.get(conn)?.values() ?? []) {
        if (call.row.kind === "PING") continue;
        call.state = "unanswered";
        if (call.row.problem !== undefined) continue;
        call.row.problem = "never answered";
        this.problems++;
        if (this.fits(call.row)) list.push(call.row);
      }
      this.open.delete(conn);
    }
    if (list.length > before) list.sort((a, b) => a.n - b.n);
  }

  /** Nothing follows. */
  end() {
    return this.next(() => {
      this.giveUp([...this.open.keys()]);
      this.changed();
    });
  }

  /** Forgets the oldest frames behind the beginning if there are too many. */
  trim() {
    const first = Math.min(FIRST_ROWS, this.rows.length >> 1);
    let count = this.rows.length - MAX_ROWS;
    let bytes = this.bytes;
    for (let at = first; at < this.rows.length && bytes > MAX_BYTES; at++) {
      bytes -= size(this.rows[at]);
      count = Math.max(count, at - first + 1);
    }
    if (count <= 0) return;
    const from = this.rows[first].n;
    for (const row of this.rows.splice(first, count)) {
      this.bytes -= size(row);
      if (row.problem !== undefined) this.problems--;
      const call = this.calls.get(row.n);
      if (call) this.open.get(row.conn)?.delete(call.name);
      this.calls.delete(row.n);
    }
    this.dropped += count;
    const to = this.rows[first]?.n ?? Infinity;
    for (const list of Object.values(this.lists)) list.splice(placeOf(list, from), placeOf(list, to) - placeOf(list, from));
  }

  /** Shows only what fits. */
  filter(text) {
    const query = (this.query = (this.query ?? 0) + 1);
    return this.next(async () => {
      if (query !== this.query) return;
      this.fits = filter(text);
      this.lists = { frames: [], problems: [], calls: [] };
      const goes = () => query === this.query;
      await inSlices(this.rows, (row) => this.fits(row) && this.list(row), goes);
      this.changed();
    });
  }

  /** The frame of a line. */
  find(n) {
    const row = this.rows[placeOf(this.rows, n)];
    return row?.n === n ? row : undefined;
  }
}

const size = (row) => 2 * ((row.data?.length ?? 0) + row.words.length) + 512;
