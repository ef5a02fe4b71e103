"""A long answer in Markdown, and what a reader sees of it."""

import re

SECTIONS = 84
PIECES = 1200
# A line of code that a reader has to get as it is: markup, blanks, quotes.
CODE = """fn main() {{
    let rows: Vec<&str> = vec!["<b>{n}</b>", "a & b"]; // not & <i>markup</i>
    for (number, row) in rows.iter().enumerate() {{
        println!("{{number:>3}}  {{row}}");
    }}
}}
"""


def block(markdown, *shown):
    return markdown + "\n\n", "".join(shown) or markdown


def table(rows):
    cells = [(f"row {row}", f"grüße {row}", f"{row * row}") for row in range(rows)]
    lines = ["| Name | Words | Number |", "|:-----|-------|-------:|"]
    lines += ["| " + " | ".join(row) + " |" for row in cells]
    return block("\n".join(lines), "Name Words Number ", " ".join(" ".join(row) for row in cells))


def code(language, text):
    return block(f"```{language}\n{text}```", text)


def section(n):
    yield block(f"## Section {n}: what was found", f"Section {n}: what was found")
    yield block(f"The **first** answer is *not* the `last_{n}` one, see [the page](https://example.com/{n}), and 世界 🦀 "
                "has to be there as well, in a sentence that is long enough to be wrapped on every screen there is.",
                f"The first answer is not the last_{n} one, see the page, and 世界 🦀 "
                "has to be there as well, in a sentence that is long enough to be wrapped on every screen there is.")
    yield block(f"- one of {n}\n- two, with `code`\n  - below two\n- three **bold**",
                f"one of {n} two, with code below two three bold")
    yield block("1. first this\n2. then that\n3. in the end nothing", "first this then that in the end nothing")
    if n % 3 == 0:
        yield code("rust", CODE.format(n=n))
    if n % 3 == 1:
        yield table(6)
    if n % 3 == 2:
        yield block(f"> As was said in {n},\n> more than once.", f"As was said in {n}, more than once.")
        yield code("python", f"def half(it):\n    return it / 2  # of {n}\n\nprint(half({n}))\n")
    # Blocks that stay open for long while they grow.
    if n == SECTIONS // 3:
        yield code("json", "[\n" + "".join(f'  {{"id": {i}, "name": "item {i}", "is": null}},\n' for i in range(150)) + "  0\n]\n")
    if n == 2 * SECTIONS // 3:
        yield table(120)


BLOCKS = [block for n in range(SECTIONS) for block in section(n)]
MARKDOWN = "".join(markdown for markdown, _ in BLOCKS)
SIZE = len(MARKDOWN) // PIECES + 1
CHUNKS = [MARKDOWN[at : at + SIZE] for at in range(0, len(MARKDOWN), SIZE)]
CODES = re.findall(r"```\w+\n(.*?)\n```", MARKDOWN, re.DOTALL)


def bare(text):
    """A text without blanks: how many there are between blocks is nobody's business."""
    return re.sub(r"\s+", "", text)


SHOWN = bare("".join(shown for _, shown in BLOCKS))
