// JSON as a tree that opens and closes, with the mouse and with the keyboard.

/** The longest text that is shown whole, and most members of one value that are. */
const MAX_TEXT = 5000;
const MAX_MEMBERS = 500;
/** The largest frame that is read as JSON, in characters. */
const MAX_JSON = 2000000;
/** Below it, large numbers are shown as they were sent. */
const MAX_EXACT = 100000;

/** A number that would lose digits. */
class Exact {
  constructor(source) {
    this.source = source;
  }
}

/** The value of a JSON text; undefined if it is none. */
function parse(text) {
  if (text.length > MAX_JSON) return undefined;
  const keep = (_, value, context) =>
    typeof value === "number" && context?.source && String(value) !== context.source ? new Exact(context.source) : value;
  try {
    return JSON.parse(text, text.length < MAX_EXACT ? keep : undefined);
  } catch {
    return undefined;
  }
}

const isFolded = (value) => typeof value === "object" && value !== null && !(value instanceof Exact);

/** What stands for a value on its line. */
function short(value) {
  if (value instanceof Exact) return value.source;
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[ ${value.length} ]`;
  if (isFolded(value)) {
    const names = Object.keys(value);
    return names.length === 0 ? "{}" : `{ ${names.slice(0, 4).join(", ")}${names.length > 4 ? ", …" : ""} }`;
  }
  const text = JSON.stringify(value);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length} characters)` : text;
}

/** A tree of a value, open to this depth. */
function tree(value, label, depth = 3) {
  const root = make("ul", "tree");
  root.setAttribute("role", "tree");
  root.setAttribute("aria-label", label);
  branches(root, isFolded(value) ? value : { "": value }, depth, 1);
  root.querySelector("[role=treeitem]").tabIndex = 0;
  root.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    fold(item, item.ariaExpanded === "false");
    focusOn(root, item);
  });
  root.addEventListener("keydown", (event) => moved(root, event));
  return root;
}

function branches(parent, value, depth, level) {
  const entries = Object.entries(value);
  for (const [name, member] of entries.slice(0, MAX_MEMBERS)) parent.append(branch(name, member, depth, level));
  if (entries.length > MAX_MEMBERS) parent.append(branch("…", new Exact(`${entries.length - MAX_MEMBERS} more`), 0, level));
}

function branch(name, value, depth, level) {
  const branch = make("li");
  branch.setAttribute("role", "none");
  const item = make("div", "line");
  item.setAttribute("role", "treeitem");
  item.ariaLevel = String(level);
  item.tabIndex = -1;
  if (name !== "") item.append(make("span", "member", printable(name)), ": ");
  item.append(make("span", kindOf(value), printable(short(value))));
  branch.append(item);
  if (isFolded(value) && Object.keys(value).length > 0) {
    item.members = value;
    item.ariaExpanded = "false";
    if (depth > 1) fold(item, true, depth - 1);
  }
  return branch;
}

const kindOf = (value) =>
  value instanceof Exact ? "number" : isFolded(value) ? "folded" : value === null ? "null" : typeof value;

function fold(item, opens, depth = 1) {
  if (item.ariaExpanded === null) return;
  item.ariaExpanded = String(opens);
  item.nextElementSibling?.remove();
  if (!opens) return;
  const group = make("ul");
  group.setAttribute("role", "group");
  branches(group, item.members, depth, Number(item.ariaLevel) + 1);
  item.after(group);
}

function focusOn(root, item) {
  root.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
  item.tabIndex = 0;
  item.focus();
}

function moved(root, event) {
  const item = event.target.closest("[role=treeitem]");
  if (!item || event.ctrlKey || event.altKey || event.metaKey) return;
  const all = [...root.querySelectorAll("[role=treeitem]")];
  const at = all.indexOf(item);
  const above = item.closest("[role=group]")?.previousElementSibling;
  const isOpen = item.ariaExpanded === "true";
  const to = {
    ArrowDown: () => all[at + 1],
    ArrowUp: () => all[at - 1],
    Home: () => all[0],
    End: () => all.at(-1),
    ArrowRight: () => (isOpen ? all[at + 1] : void fold(item, true)),
    ArrowLeft: () => (isOpen ? void fold(item, false) : above),
    Enter: () => void fold(item, !isOpen),
    " ": () => void fold(item, !isOpen),
  }[event.key];
  if (!to) return;
  event.preventDefault();
  event.stopPropagation();
  focusOn(root, to() ?? item);
}
