"""Verdicts, settings, environment, and how to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spindle.base import units
from spindle.base.commands import given, shell
from spindle.report.document.entry import Entry, Plan
from spindle.report.document.model import Block, Code, Paragraph, Sheet
from spindle.report.document.recipe import USUAL_SEED, recipe_of
from spindle.report.document.trial import Case, runs_of
from spindle.report.terminal.table import Column
from spindle.result.record import ImportedRecord, Level, QuickRecord, RunRecord, SearchRecord, Verdict

MOST_COMMANDS = 24
MOST_MACHINES = 8
MOST_VERDICTS = 8
"""Most verdicts shown one by one; more are grouped by check."""
MOST_FILES = 4
"""Most files shown one by one; more are shown together."""


def names_of(entries: Sequence[Entry], cases: Sequence[Case]) -> dict[str, str]:
    """Return run ID -> its name in this report."""
    found = {}
    for case in cases:
        for at, trial in enumerate(case.trials):
            found[trial.run.id] = f"{case.label} #{at + 1}" if len(case.trials) > 1 else case.label
    for entry in entries:
        if isinstance(entry.record, SearchRecord | QuickRecord):
            for run in entry.record.runs:
                found.setdefault(run.id, f"{run.workload.name}, {run.workload.outstanding} under way")
    return found


def verdicts(entries: Sequence[Entry], names: Mapping[str, str]) -> list[Block]:
    """Return the problems, worst first, and the names of the checks that found nothing."""
    found: list[tuple[Verdict, str]] = []
    passed: Counter[str] = Counter()
    checked = 0
    for entry in entries:
        if not isinstance(entry.record, RunRecord):
            found += [(verdict, entry.source) for verdict in entry.record.verdicts]
        for run in runs_of(entry):
            checked += 1
            passed.update(verdict.check for verdict in run.verdicts if verdict.level is Level.OK)
            found += [(verdict, names.get(run.id, run.id)) for verdict in run.verdicts]
    bad = sorted(
        ((verdict, where) for verdict, where in found if verdict.level is not Level.OK),
        key=lambda pair: -pair[0].level.rank,
    )
    blocks: list[Block] = []
    if bad:
        columns = [Column(head, words=True) for head in ("verdict", "check", "run", "evidence", "what to do")]
        every = [[verdict.level, verdict.check, where, verdict.evidence, verdict.advice] for verdict, where in bad]
        kinds: dict[tuple[Level, str], list[tuple[Verdict, str]]] = {}
        for verdict, where in bad:
            kinds.setdefault((verdict.level, verdict.check), []).append((verdict, where))
        if len(every) <= MOST_VERDICTS:
            blocks.append(Sheet("Invalid figures and warnings", columns, every))
        else:
            rows = [
                [level, check, _runs([where for _, where in theirs]), theirs[0][0].evidence, theirs[0][0].advice]
                for (level, check), theirs in kinds.items()
            ]
            blocks.append(Sheet("Invalid figures and warnings, with the evidence of the first run", columns, rows))
            blocks.append(Sheet("Each of them", columns, every, folded=True))
    else:
        blocks.append(Paragraph("No check found anything against these figures.", Level.OK))
    everywhere = [name for name, count in passed.items() if count == checked]
    if everywhere:
        blocks.append(Paragraph(f"Checked without a problem in every run: {', '.join(sorted(everywhere))}."))
    return blocks


def _runs(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more"


def settings(entries: Sequence[Entry], names: Mapping[str, str]) -> list[Block]:
    """Return the settings that differ between runs or changed during one; then those that are the same."""
    runs = [run for entry in entries for run in runs_of(entry) if run.settings.before]
    if not runs:
        return []
    keys = sorted({key for run in runs for key in run.settings.before})
    differing = [key for key in keys if len({run.settings.before.get(key) for run in runs}) > 1]
    blocks: list[Block] = []
    changed = [
        [names.get(run.id, run.id), change.name, change.before or "-", change.after or "-"]
        for run in runs
        for change in run.settings.changed
    ]
    if changed:
        columns = [Column(head, words=True) for head in ("run", "setting", "before", "after")]
        blocks.append(Sheet("Settings that changed during a run", columns, changed))
    if differing:
        values = {key: Counter(run.settings.before.get(key, "-") for run in runs) for key in differing}
        rows = [
            [key, "; ".join(f"{value} ({count} runs)" for value, count in sorted(values[key].items()))]
            for key in differing
        ]
        columns = [Column("setting", words=True), Column("values", words=True)]
        blocks.append(Sheet("Settings that differ between runs", columns, rows, folded=len(rows) > 12))
    same = [[key, runs[0].settings.before.get(key, "")] for key in keys if key not in differing]
    if same:
        columns = [Column("setting", words=True), Column("value", words=True)]
        title = "Settings in force" if len(runs) == 1 else "Settings that were the same in all runs"
        blocks.append(Sheet(title, columns, same, folded=True))
    return blocks


def environment(entries: Sequence[Entry]) -> list[Block]:
    """Kernel, CPU, memory, drives; machine files of modelled ones."""
    rows: dict[tuple[str, str], None] = {}
    machines: dict[str, str] = {}
    for entry in entries:
        for run in runs_of(entry):
            for name, value in _environment(run):
                rows[name, value] = None
            text = run.target.detail.get("machine")
            if isinstance(text, str):
                machines.setdefault(text, str(run.target.asked))
    blocks: list[Block] = []
    few = [row for row in rows if row[0] == "modelled machine"][MOST_MACHINES:]
    for row in few:
        del rows[row]
    if rows:
        columns = [Column("what", words=True), Column("value", words=True)]
        blocks.append(
            Sheet("Where it ran", columns, [list(row) for row in sorted(rows, key=lambda row: _ORDER.index(row[0]))])
        )
    if len(machines) <= MOST_FILES:
        blocks += [Code(f"Modelled machine {name}", text, folded=True) for text, name in machines.items()]
    return blocks


_ORDER = ("kernel", "system", "CPU", "memory", "machine", "device", "modelled machine", "spindle", "load made by")


def _environment(run: RunRecord) -> Iterator[tuple[str, str]]:
    def part(name: str) -> dict[str, Any]:
        found = run.environment.get(name)
        return found if isinstance(found, dict) else {}

    kernel, cpu, memory, machine = part("kernel"), part("cpu"), part("memory"), part("machine")
    if kernel.get("release"):
        yield "kernel", f"{kernel.get('name') or ''} {kernel['release']} {kernel.get('architecture') or ''}".strip()
    if part("versions").get("system"):
        yield "system", str(part("versions")["system"])
    if cpu.get("online"):
        governor = f", governor {cpu['governor']}" if cpu.get("governor") else ""
        yield "CPU", f"{cpu.get('model') or 'unknown'}, {cpu['online']} online{governor}"
    total = memory.get("total_bytes")
    if isinstance(total, int | float):
        yield "memory", units.size(total)
    if machine.get("product") or machine.get("virtual"):
        words = [str(machine[key]) for key in ("vendor", "product") if machine.get(key)]
        yield "machine", ", ".join([*words, *(["virtual"] if machine.get("virtual") else [])])
    listed = run.target.detail.get("devices")
    for device in listed if isinstance(listed, list) else []:
        if isinstance(device, dict):
            model = f", {device['model']}" if device.get("model") else ""
            yield "device", f"{device.get('name')}{model}, target of {units.size(run.target.size_bytes)}"
    if run.target.traits.is_modelled:
        known = run.target.detail
        how = "under" if run.target.traits.has_kernel else "rules of"
        yield (
            "modelled machine",
            f"{run.target.asked}: {known.get('about') or ''} ({how} Linux {known.get('kernel')})",
        )
    yield "spindle", run.tool.version
    generator = run.figures.generator
    yield "load made by", f"{generator.engine}, time stamps by {generator.timestamps}"


def commands(entries: Sequence[Entry], names: Mapping[str, str], plans: Sequence[Plan] = ()) -> list[Block]:
    """Return the plans of campaigns, one command for each distinct request, and files that are not presets or in the
    catalogue."""
    blocks: list[Block] = []
    for plan in plans:
        blocks += [Code(f"Campaign {plan.name}", plan.command), Code(plan.file, plan.text, folded=True)]
    asked: dict[str, list[str]] = {}
    seeds: dict[str, list[int]] = {}
    files: dict[tuple[str, str], None] = {}
    unknown = 0
    for entry in entries:
        if isinstance(entry.record, ImportedRecord):
            continue
        recipe = recipe_of(entry.record)
        if recipe is None:
            unknown += 1
            continue
        command = recipe.command
        for file, text in recipe.files:
            chosen = _file(files, file, text)
            command = command.replace(file, chosen)
            files[chosen, text] = None
        asked.setdefault(command, []).append(names.get(entry.record.id, _name(entry)))
        seeds.setdefault(command, []).append(recipe.seed)
    lines = []
    for command, theirs in asked.items():
        label = theirs[0].rpartition(" #")[0] or theirs[0]
        lines.append(f"# {label}{_repeated(seeds[command])}\n{_seeded(command, seeds[command])}")
    if lines:
        title = "Commands" if not plans else "Each run by itself"
        blocks.append(Code(title, "\n".join(lines), folded=bool(plans) or len(lines) > MOST_COMMANDS))
    if len(files) <= MOST_FILES:
        blocks += [Code(name, text, folded=True) for name, text in files]
    else:
        script = "\n".join(f"cat > {name} <<'END'\n{text.rstrip()}\nEND" for name, text in files)
        blocks.append(Code(f"The {len(files)} files that the commands name, as commands that make them", script, True))
    if unknown and not plans:
        blocks.append(Paragraph(f"{unknown} record{'s do' if unknown > 1 else ' does'} not say how to repeat it."))
    return blocks


def _name(entry: Entry) -> str:
    runs = runs_of(entry)
    return f"{runs[0].workload.name} on {runs[0].target.place}" if runs else entry.source


def _repeated(seeds: Sequence[int]) -> str:
    different = sorted(set(seeds))
    if len(seeds) == 1:
        return ""
    which = f", seeds {different[0]} to {different[-1]}" if len(different) > 1 else ""
    return f" ({len(seeds)} runs{which})"


def _seeded(command: str, seeds: Sequence[int]) -> str:
    """Add the first seed, unless it is the default."""
    return command if min(seeds) == USUAL_SEED else f"{command} {shell(*given(seed=min(seeds)))}"


def _file(files: Iterable[tuple[str, str]], name: str, text: str) -> str:
    """Return the file's name for this text; a new one if another text has that name."""
    taken: dict[str, str] = dict(files)
    stem, _, ending = name.rpartition(".")
    number, chosen = 1, name
    while taken.get(chosen, text) != text:
        number += 1
        chosen = f"{stem}-{number}.{ending}"
    return chosen
