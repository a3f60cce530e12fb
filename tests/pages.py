"""The commands in README and docs: those of each page, in order, with the text around them.

A comment that readers do not see may say how the next block is treated:

- `<!-- file: NAME -->`: the block is the content of this file, which later commands use;
- `<!-- run: exact -->`: the output must match the page line for line, on stderr too (`...`: some lines left out);
- `<!-- run: exact, status 2 -->`: the same for a command that ends with this status;
- `<!-- run: script -->`: the block is one shell command;
- `<!-- run: with OPTIONS -->`: these options are added, to make the run shorter;
- `<!-- run: not, REASON -->`: it is not run, but its options are checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"(?:<!-- (?P<how>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.M | re.S)
INLINE = re.compile(r"`(spindle [^`]+)`")
# Parts that a reader replaces: alternatives, options, placeholders, hosts and devices.
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
        """True if it can be run unchanged."""
        if self.how.startswith("run: not"):
            return False
        return self.example or not SYNOPSIS.search(self.line)

    @property
    def is_exact(self) -> bool:
        """True if its output is the same each time."""
        return self.how.startswith("run: exact")

    @property
    def status(self) -> tuple[int, ...]:
        """Allowed exit statuses: a figure measured on a busy machine may be invalid (1); all else must succeed."""
        if match := re.search(r", status (\d)$", self.how):
            return (0, int(match[1]))
        return (0, 1) if re.match(r"spindle (run|quick|campaign|check|verify)", self.line) else (0,)


@dataclass(frozen=True)
class File:
    """A file whose content is on the page."""

    name: str
    text: str


def steps(page: str) -> list[Command | File]:
    """The commands and files of a page, in order."""
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
    """The lines after `$ ` with their output."""
    commands = []
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.splitlines()
        count = 1
        while lines[count - 1].endswith("\\") or "\n".join(lines[:count]).count('"') % 2:
            count += 1
        commands.append(Command("\n".join(lines[:count]), tuple(lines[count:]), how, example=True))
    return commands


def listed(text: str, how: str) -> list[Command]:
    """Lines of a block that begin with the program's name, without their explanations."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [Command(explained(line), how=how) for line in lines if line.startswith("spindle ")]


def explained(line: str) -> str:
    return re.split(r"\s{2,}|\s#\s", line)[0]


def inline(page: str) -> list[Command]:
    """Commands within the text."""
    text = BLOCK.sub("", (ROOT / page).read_text())
    return [Command(" ".join(line.split())) for line in INLINE.findall(text)]
