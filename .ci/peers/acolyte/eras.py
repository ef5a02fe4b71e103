"""What strict clients of Acolyte accept: those of 0.18 to 0.21, those of 0.22, and later ones.

They drop what does not fit, or hang on it, so all that a server says has to fit. Each judge takes a value and where it
stands, and fails."""

import re

from harness import Failed, short

ERAS = ("0.18 to 0.21", "0.22", "later")

def judge(what, fits):
    def check(value, where):
        if not fits(value):
            raise Failed(f"{where} is no {what}: {short(value)}")

    return check

def matching(pattern):
    return judge(f"text like {pattern}", lambda value: isinstance(value, str) and re.fullmatch(pattern, value))

def one(*values):
    return judge(f"one of {values}", lambda value: value in values and isinstance(value, str))

def some_id(prefix):
    return matching(f"{prefix}_[a-z0-9]+")

TEXT = judge("text", lambda value: isinstance(value, str))
WORD = judge("text with something in it", lambda value: isinstance(value, str) and value)
FLAG = judge("boolean", lambda value: isinstance(value, bool))
TRUE = judge("true", lambda value: value is True)
COUNT = judge("count", lambda value: type(value) is int and 0 <= value < 2**53)
PLACE = judge("place", lambda value: type(value) is int and 0 < value < 2**53)
OBJECT = judge("object", lambda value: isinstance(value, dict))
NEVER = judge("member that is known", lambda value: False)
# A `Z`, and no other zone.
DATE = matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

def each(item):
    def check(value, where):
        judge("list", lambda value: isinstance(value, list))(value, where)
        for at, inner in enumerate(value):
            item(inner, f"{where}[{at}]")

    return check

def members(rest=NEVER, **known):
    """An object with these members. Names that end in `_` may be missing, but are never null."""

    def check(value, where):
        OBJECT(value, where)
        required = [name for name in known if not name.endswith("_")]
        for name in required:
            if name not in value:
                raise Failed(f"{where} has no {name}: {short(value)}")
        for name, inner in value.items():
            known.get(name, known.get(f"{name}_", rest))(inner, f"{where}.{name}")

    return check

def tagged(tag, kinds):
    def check(value, where):
        OBJECT(value, where)
        if value.get(tag) not in kinds:
            raise Failed(f"{where} has an unknown {tag}: {short(value)}")
        kinds[value[tag]](value, where)

    return check

def part(is_old):
    """What a tool puts out."""
    files = {"files" if is_old else "files_": COUNT}
    return tagged("kind", {
        "tool-header": members(kind=TEXT, labelKey=TEXT, detail_=TEXT, state_=one("on", "off")),
        "text": members(kind=TEXT, text=TEXT),
        "file-header": members(kind=TEXT, labelKey=TEXT, count=COUNT, targets=each(TEXT)),
        "scope-header": members(kind=TEXT, labelKey=TEXT, scope=TEXT, patterns=each(TEXT), matches=COUNT),
        "edit-header": members(kind=TEXT, labelKey=TEXT, path=TEXT, added=COUNT, removed=COUNT, **files),
        "diff": members(kind=TEXT, marker=one("add", "remove", "context"), lineNumber=PLACE, text=TEXT),
        "shell-output": members(kind=TEXT, stream=one("stdout", "stderr"), text=TEXT),
        "no-output": members(kind=TEXT),
        "truncated": members(kind=TEXT, count_=COUNT, unit_=TEXT),
    })

DETAIL = members(code_=TEXT, category_=TEXT, kind_=TEXT, source_=TEXT, tool_=TEXT)
SKILL = members(name=WORD, instructions=WORD)

def events(era):
    tool = {"type": TEXT, "toolCallId": TEXT, "toolName": TEXT}
    progress = one("pending", "in_progress", "done", "failed")
    item = members(id=TEXT, label=TEXT, status=progress, order=COUNT)
    return {
        "status": members(type=TEXT, state=members(kind=one("running"))),
        "reasoning": members(type=TEXT, text=TEXT),
        "text-delta": members(type=TEXT, text=TEXT),
        "tool-call": members(args=OBJECT, **tool),
        "tool-output": members(content=part(era == ERAS[0]), **tool),
        "tool-result": members(isError_=TRUE, errorCode_=TEXT, error_=DETAIL, **tool),
        "usage": members(type=TEXT, inputTokens=COUNT, outputTokens=COUNT),
        "tasklist" if era == ERAS[2] else "checklist": members(
            type=TEXT, groupId=WORD, groupTitle=WORD, items=each(item)
        ),
        # Old clients drop these, which does no harm.
        "notice": members(type=TEXT, level=one("warn", "error"), message=TEXT, source_=TEXT),
        "skill-activated": members(type=TEXT, skill=SKILL),
        "skill-deactivated": members(type=TEXT, name=TEXT),
    }

def status(is_old):
    if is_old:
        more = {"provider_auth_": each(TEXT), "tasks_detached": COUNT}
    else:
        more = {"provider_auth": each(TEXT), "tasks_detached_": COUNT}
    return members(
        rest=judge("value of a status", lambda value: isinstance(value, (bool, str, int, float, list))),
        ok=TRUE, providers=each(one("anthropic", "google", "openai", "vercel")), model=TEXT, protocol_version=one("1"),
        capabilities=judge("sorted list", lambda it: isinstance(it, str) and it.split(", ") == sorted(it.split(", "))),
        service=matching(r"http://localhost:\d+"),
        tasks_total=COUNT, tasks_running=COUNT, rpc_queue_length=COUNT, **more,
    )

def era(name):
    """The judges of an era: of a message over a WebSocket, of a frame of a stream, of a status."""
    is_old = name == ERAS[0]
    usage = members(inputTokens=COUNT, outputTokens=COUNT, totalTokens=COUNT, inputBudgetTokens_=COUNT)
    reply = members(
        output=TEXT, outputStreamed=FLAG, model=WORD, error_=TEXT, toolCalls_=each(TEXT), modelCalls_=COUNT,
        activeSkills_=each(SKILL), usage_=usage, promptBreakdown_=members(rest=COUNT),
        state_=one("done", "awaiting-input") if is_old else NEVER,
    )
    # Clients ask for no more than the words; servers always send all.
    problem = {"errorMessage": TEXT, "errorId_": some_id("err"), "errorCode_": TEXT, "error_": DETAIL}
    states = one("accepted", "queued", "running", "completed", "failed", "cancelled")
    task = members(id=some_id("task"), state=states, createdAt=DATE, updatedAt=DATE)
    envelope = {"id": some_id("rpc"), "type": TEXT}
    kinds = events(name)
    message = tagged("type", {
        "status.result": members(status=status(is_old), **envelope),
        "chat.accepted": members(taskId=some_id("task"), **envelope),
        "chat.queued": members(position=PLACE, **envelope),
        "chat.started": members(**envelope),
        "chat.event": members(event=tagged("type", kinds), **envelope),
        "chat.done": members(reply=reply, **envelope),
        "chat.error": members(**envelope, **problem),
        "chat.abort.result": members(requestId=some_id("rpc"), aborted=FLAG, **envelope),
        "task.status.result": members(task=lambda value, at: value is None or task(value, at), **envelope),
        "error": members(error=WORD, **envelope),
    })
    ends = {"done": members(type=TEXT, reply=reply), "error": members(type=TEXT, **problem)}
    return {"message": message, "frame": tagged("type", kinds | ends), "status": status(is_old)}

RELEASED = {name: era(name) for name in ERAS[:2]}

def accepted(kind, value):
    """Fails unless the clients of all releases accept it."""
    for name, judges in RELEASED.items():
        judges[kind](value, f"{kind} for {name}:")
