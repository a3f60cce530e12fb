"""Export of stored results to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from spindle.cli.writing import named_by, output_of
from spindle.store import Selected, Store
from spindle.store.export import Sheet, as_csv, as_parquet, need_parquet

SUFFIXES = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
KINDS = {"json": "result", "fio": "fio-json"}
WRITERS: dict[str, Callable[[Sheet], bytes]] = {"csv": as_csv, "parquet": as_parquet}


def export(store: Store, chosen: list[Selected], output: Path, form: str | None, tables: bool) -> str:
    """Write the files and return one line about them."""
    form = form or SUFFIXES.get(output.suffix, "json")
    if tables and form not in WRITERS:
        raise click.UsageError(f"--tables: use it with --format csv or parquet, not {form}")
    if form == "parquet":
        need_parquet()
    if tables:
        return _folder(output, ((f"{sheet.name}.{form}", WRITERS[form](sheet)) for sheet in store.sheets(chosen)))
    if form in WRITERS:
        return _file(output, "sheet", WRITERS[form](store.flat(chosen)), f"{len(chosen)} rows")
    documents = ((each.run_id, _document(store, each, form)) for each in chosen)
    if len(chosen) == 1 and (output.suffix == ".json" or not output.is_dir()):
        return _file(output, KINDS[form], next(documents)[1], "1 result")
    return _folder(output, ((f"{run_id}.json", data) for run_id, data in documents))


def _document(store: Store, each: Selected, form: str) -> bytes:
    if form == "fio":
        from spindle.formats import fio_json

        return fio_json.write(each.record)
    from spindle.result.document import encode

    return store.document(each.run_id) if each.key is not None else encode(each.record)


def _file(output: Path, kind: str, data: bytes, what: str) -> str:
    from spindle.library.outputs import keep_apart

    file = output_of(output, kind, "--output")
    keep_apart([file], named_by(click.get_current_context()))
    file.save(data)
    return f"{output}: {what}, {len(data)} bytes"


def _folder(output: Path, files: Iterator[tuple[str, bytes]]) -> str:
    """Write into a new or empty folder, so that nothing is overwritten."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise click.UsageError(f"--output {output}: the folder is not empty; name a new one")
    except OSError as error:
        raise click.UsageError(f"--output {output}: {error.strerror}; name a folder elsewhere") from None
    count, size = 0, 0
    for name, data in files:
        output_of(output / name, KINDS.get(name.rpartition(".")[2], "sheet"), "--output").save(data)
        count, size = count + 1, size + len(data)
    return f"{output}: {count} files, {size} bytes"
