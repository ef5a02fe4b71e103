// What the agent says. The frames are those of ConnectOnion: events tell what it does, OUTPUT and ERROR end a run.

import { get, show } from "./page/dom.js";
import { announce } from "./page/view.js";
import { put, showAll, showProgress } from "./items.js";
import { memory, save } from "./memory.js";

/** The longest text that grows, in UTF-16 units; the whole one comes in the end. */
const MAX_LIVE = 200_000;

const mode = get("mode");
let send = () => null;
/** The change that the next question is about. */
let change = null;

/** Sets how answers are sent that may have been lost. */
export function onRepeat(then) {
  send = then;
}

/** The item of this kind and id, newest first. */
const known = (kind, id) => memory.items.findLast((item) => item.kind === kind && item.id === id);

/** The question that waits for words, if there is one. */
export const openQuestion = () =>
  memory.items.find((item) => item.kind === "ask" && item.open && item.type !== "approval_needed");

const answers = {
  CONNECTED(frame) {
    if (frame.session_id !== memory.sessionId) memory.lastId = null;
    memory.sessionId = frame.session_id;
    const wasRunning = memory.running;
    memory.running = frame.status === "running" || frame.status === "executing";
    // What is not whole is sent again from its beginning.
    if (memory.running) for (const item of memory.items.filter((item) => item.live)) item.text = "";
    if (Array.isArray(frame.chat_items)) {
      if (frame.session !== undefined) memory.session = frame.session;
      // What is still running is sent as events.
      if (!memory.running) {
        memory.items = asBefore(memory.items, frame.chat_items.map(shownBefore).filter(Boolean));
        const [asked, answered] = ["user", "agent"].map((who) => memory.items.findLastIndex(({ kind }) => kind === who));
        // The agent ended before it answered, or failed.
        if (asked > answered) memory.items.push({ kind: "failure", text: "There is no answer. Ask again if you like." });
        showAll();
      }
    } else if (wasRunning && !memory.running) {
      end("failure", "The agent has no record of this run. Ask again if you like.");
    }
    if (memory.running && frame.bound_answers) {
      // An answer may have been lost with its line. The agent refuses those that it has.
      for (const item of memory.items.filter((item) => item.kind === "ask" && item.response)) {
        item.repeated = send(item.response);
      }
    }
  },
  OUTPUT(frame) {
    if (frame.session !== undefined) memory.session = frame.session;
    const last = memory.items.findLast(({ kind }) => kind !== "usage" && kind !== "notice");
    const text = show(frame.result ?? "");
    if (last?.kind === "agent" && (last.live || last.text === text) && text !== "") {
      put(Object.assign(last, { text, live: false }));
    } else {
      put({ kind: text === "" ? "notice" : "agent", text: text === "" ? "There is no answer." : text });
    }
    if (frame.not_stored) {
      put({ kind: "notice", text: `This answer is not stored, so the agent may forget it: ${show(frame.not_stored)}` });
    }
    end();
  },
  ERROR(frame) {
    const text = show(frame.message ?? frame.error ?? "unknown error");
    if (frame.code === "STALE_ANSWER") {
      const asked = known("ask", frame.request_id);
      if (asked?.repeated) asked.repeated = false;
      else if (asked) put(Object.assign(asked, { open: false, answer: "Too late." }));
    } else if (frame.code === "RUNTIME_INPUT_REJECTED" || frame.received !== undefined) {
      put({ kind: "failure", text });
    } else {
      end("failure", text);
    }
  },
  RUNTIME_INPUT_ACK(frame) {
    const said = memory.items.find((item) => item.kind === "user" && item.queued && !item.id);
    if (said) put(Object.assign(said, { id: frame.id }));
  },
  user_input(frame) {
    const queued = frame.runtime_input ? known("user", frame.id) : undefined;
    if (queued) return put(Object.assign(queued, { queued: false }));
    // What was typed here is shown already.
    const typed = memory.items.findLast((item) => item.kind === "user");
    const said = spoken(show(frame.content ?? ""));
    if (typed?.text === said && (typed.id ?? frame.id) === frame.id) {
      return put(Object.assign(typed, { id: frame.id, queued: false, sent: show(frame.content ?? "") }));
    }
    memory.running = true;
    put({ kind: "user", id: frame.id, text: said });
  },
  assistant: (frame) => whole("agent", frame),
  assistant_delta: (frame) => grow("agent", frame),
  thinking(frame) {
    if (frame.kind === "retry") put({ kind: "notice", text: show(frame.content ?? "") });
    else if (frame.content) whole("thought", frame);
  },
  thinking_delta: (frame) => grow("thought", frame),
  tool_call(frame) {
    const id = frame.tool_id ?? frame.id;
    if (known("tool", id)) return;
    put({ kind: "tool", id, name: show(frame.name ?? "tool"), args: frame.args, state: "running" });
  },
  tool_result(frame) {
    const id = frame.tool_id ?? frame.id;
    const failed = ["error", "not_found", "failed"].includes(frame.status);
    const tool = known("tool", id) ?? { kind: "tool", id, name: show(frame.name ?? "tool"), args: frame.args };
    put(Object.assign(tool, { state: failed ? "failed" : "done", result: frame.result ?? frame.error ?? "" }));
  },
  tool_blocked(frame) {
    put({ kind: "notice", text: show(frame.message ?? `${frame.tool} may not run`) });
  },
  /** What the calls of the model have cost so far. */
  llm_result(frame) {
    const [input, output] = [frame.usage?.input_tokens, frame.usage?.output_tokens].map((count) => count ?? 0);
    if (!Number.isFinite(input + output) || input + output === 0) return;
    const asked = memory.items.findLastIndex((item) => item.kind === "user");
    const sum = memory.items.slice(asked + 1).find((item) => item.kind === "usage") ?? { kind: "usage", input: 0, output: 0 };
    put(Object.assign(sum, { input: sum.input + input, output: sum.output + output }));
  },
  diff_preview(frame) {
    if (typeof frame.preview !== "string") return;
    change = { path: show(frame.path ?? ""), preview: frame.preview, truncated: frame.truncated === true };
  },
  ask_user(frame) {
    ask(frame, show(frame.question ?? frame.text ?? ""), { options: frame.options });
  },
  approval_needed(frame) {
    const tool = show(frame.tool ?? "a tool");
    const what = frame.description ? show(frame.description) : `Use ${tool}`;
    ask(frame, `${what.replace(/\.$/, "")}?`, { tool, details: frame.arguments, diff: change });
    change = null;
  },
  plan_review(frame) {
    ask(frame, show(frame.plan_content ?? ""), { options: ["Go ahead.", "No."] });
  },
  compact(frame) {
    const words = {
      compacting: "The conversation is made shorter.",
      error: `The conversation was not made shorter: ${show(frame.error ?? "")}`,
    };
    const text = words[frame.status] ?? `The conversation was made shorter: ${show(frame.message ?? "done")}`;
    put(Object.assign(known("compact", frame.id) ?? { kind: "compact", id: frame.id }, { text }));
  },
  mode_changed(frame) {
    if ([...mode.options].some((option) => option.value === frame.mode)) mode.value = frame.mode;
  },
  files_received(frame) {
    const names = (frame.files ?? []).map((file) => show(file?.name ?? "file"));
    put({ kind: "notice", id: frame.id, text: `The agent received ${names.join(", ")}.` });
  },
};

/** More of a text, which its whole replaces. */
function grow(kind, { message_id: id, content }) {
  if (typeof content !== "string") return;
  const item = known(kind, id) ?? { kind, id, text: "", live: true };
  if (item.live && item.text.length < MAX_LIVE) put(Object.assign(item, { text: item.text + content }));
}

function whole(kind, { id, content }) {
  const item = known(kind, id) ?? { kind, id };
  const text = show(content ?? "");
  if (item.text !== text || item.live) put(Object.assign(item, { text, live: false }));
}

function ask(frame, text, more) {
  if (known("ask", frame.id)) return;
  const tool = memory.items.findLast((item) => item.kind === "tool" && item.state === "running");
  if (tool) put(Object.assign(tool, { state: "waits" }));
  put({ kind: "ask", id: frame.id, type: frame.type, text, open: true, ...more });
  announce(`The agent asks: ${text}`);
}

/** Takes a frame. */
export function heard(frame) {
  memory.running ||= frame.type === "llm_call";
  answers[frame.type]?.(frame);
  // Events can be replayed from here on, but not from the middle of a text.
  const isPart = frame.type === "assistant_delta" || frame.type === "thinking_delta";
  if (typeof frame.id === "string" && typeof frame.ts === "number" && !isPart) memory.lastId = frame.id;
  if (!isPart) save();
  showProgress();
}

/** Ends a run, with a word about it if there is one to be said. */
function end(kind, text) {
  memory.running = false;
  for (const item of memory.items) {
    delete item.response;
    if (item.kind === "ask" && item.open) put(Object.assign(item, { open: false }));
    if (item.kind === "tool" && ["running", "waits"].includes(item.state)) put(Object.assign(item, { state: "ended" }));
    if (item.queued) put(Object.assign(item, { queued: false }));
    if (item.live) put(Object.assign(item, { live: false }));
  }
  if (kind !== undefined) put({ kind, text });
}

/** The items as the agent remembers them, with what only this browser has kept of them: times, files, and what they have
 * cost. */
function asBefore(old, items) {
  const turns = [];
  for (const item of old) {
    if (item.kind === "user") turns.push({ asked: item, rest: [] });
    else turns.at(-1)?.rest.push(item);
  }
  const all = [];
  let turn = null;
  const end = () => all.push(...(turn?.rest.filter(({ kind }) => kind === "usage") ?? []));
  for (const item of items) {
    if (item.kind === "user") {
      end();
      turn = turns.find(({ asked }) => asked.text === item.text) ?? null;
      if (turn) turns.splice(0, turns.indexOf(turn) + 1);
    }
    const same = [turn?.asked, ...(turn?.rest ?? [])].find((it) => it && it.kind === item.kind && it.text === item.text);
    const { at, files } = same ?? {};
    all.push({ ...item, ...(at && { at }), ...(files && { files }) });
  }
  end();
  return all;
}

/** Where a host names the files of a prompt for the agent. */
export const REMINDER = "\n\n<system-reminder>";

/** What the user has said, without what a host adds for the agent. */
export const spoken = (text) => text.split(REMINDER)[0];

/** An item as the agent remembers it. */
function shownBefore(item) {
  const text = typeof item?.content === "string" ? item.content : show(item?.content?.[0]?.text ?? "");
  switch (item?.type) {
    case "user":
      return { kind: "user", text: spoken(text) };
    case "agent":
      return { kind: "agent", text };
    case "thinking":
      return item.content && item.kind !== "retry" ? { kind: "thought", text } : null;
    case "tool_call": {
      const state = { done: "done", error: "failed" }[item.status] ?? "ended";
      return { kind: "tool", id: item.id, name: show(item.name ?? "tool"), args: item.args, state, result: item.result };
    }
    default:
      return null;
  }
}
