"""What README and docs say can be typed: the commands of each page, in order, with what stands around them.

A page may say how its next block is to be taken, in a comment that readers do not see:

- `<!-- file: NAME -->`: the block is the content of that file, which later commands use;
- `<!-- run: exact -->`: the output must be what the page shows, line for line, on stderr too (`...`: some left out);
- `<!-- run: exact, status 2 -->`: the same of a command that ends with this status;
- `<!-- run: script -->`: the block is one command of the shell;
- `<!-- run: with OPTIONS -->`: shorter, by adding these options;
- `<!-- run: not, REASON -->`: it is not run; its options are looked at all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"(?:<!-- (?P<how>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.M | re.S)
INLINE = re.compile(r"`(spindle [^`]+)`")
# What stands for something else: alternatives, options, placeholders, hosts and devices that a reader puts in.
SYNOPSIS = re.compile(r"\[|\||\.\.\.|\b[A-Z]{3,}\b|\bA B\b|192\.0\.2|/dev/sd[bX]|#|\$seed")


@dataclass(frozen=True)
class Command:
    """A command line and the output that the page shows for it."""

    line: str
    shown: tuple[str, ...] = ()
    how: str = ""
    example: bool = False

    @property
    def is_run(self) -> bool:
        """It can be carried out as it stands."""
        if self.how.startswith("run: not"):
            return False
        return self.example or not SYNOPSIS.search(self.line)

    @property
    def is_exact(self) -> bool:
        """Its output is the same each time."""
        return self.how.startswith("run: exact")

    @property
    def status(self) -> tuple[int, ...]:
        """What it may end with: a figure that is measured on a busy machine may be invalid (1), all else works."""
        if match := re.search(r", status (\d)$", self.how):
            return (0, int(match[1]))
        return (0, 1) if re.match(r"spindle (run|quick|campaign|check|verify)", self.line) else (0,)


@dataclass(frozen=True)
class File:
    """A file that the page gives the content of."""

    name: str
    text: str


def steps(page: str) -> list[Command | File]:
    """What a page has to carry out, in its order."""
    found: list[Command | File] = []
    for match in BLOCK.finditer((ROOT / page).read_text()):
        how = match["how"] or ""
        if how.startswith("file: "):
            found.append(File(how.removeprefix("file: "), match["text"]))
        elif how == "run: script":
            found.append(Command(match["text"], how=how, example=True))
        elif re.search(r"^\$ ", match["text"], re.M):
            found += examples(match["text"], how)
        else:
            found += listed(match["text"], how)
    return found


def examples(text: str, how: str) -> list[Command]:
    """Lines after `$ ` with what they print."""
    commands = []
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.splitlines()
        count = 1
        while lines[count - 1].endswith("\\") or "\n".join(lines[:count]).count('"') % 2:
            count += 1
        commands.append(Command("\n".join(lines[:count]), tuple(lines[count:]), how, example=True))
    return commands


def listed(text: str, how: str) -> list[Command]:
    """Lines of a block that begin with the program's name, without what explains them."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [Command(explained(line), how=how) for line in lines if line.startswith("spindle ")]


def explained(line: str) -> str:
    return re.split(r"\s{2,}|\s#\s", line)[0]


def inline(page: str) -> list[Command]:
    """Commands within the text."""
    text = BLOCK.sub("", (ROOT / page).read_text())
    return [Command(" ".join(line.split())) for line in INLINE.findall(text)]
