"""Export of stored results to files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from spindle.library.options import one_of
from spindle.library.outputs import keep_apart, output_of
from spindle.run.errors import Usage
from spindle.store import SelectedRecord, Store
from spindle.store.export import Sheet, as_csv, as_parquet, need_parquet

SUFFIXES = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
KINDS = {"json": "result", "fio": "fio-json"}
WRITERS: dict[str, Callable[[Sheet], bytes]] = {"csv": as_csv, "parquet": as_parquet}


def export(
    store: Store,
    chosen: Sequence[SelectedRecord],
    path: Path,
    form: str | None,
    *,
    tables: bool,
    force: bool,
    others: Iterable[tuple[str, str]] = (),
) -> str:
    """Write the files and return one line about them. `others`: as of `keep_apart`. Raises errors of one line."""
    form = form or SUFFIXES.get(path.suffix, "json")
    one_of(form, "`format=`", (*KINDS, *WRITERS))
    if tables and form not in WRITERS:
        raise Usage(f"`tables=`: goes with `format=` csv or parquet, not {form}")
    if form == "parquet":
        need_parquet()
    if tables:
        return _folder(path, force, ((f"{sheet.name}.{form}", WRITERS[form](sheet)) for sheet in store.sheets(chosen)))
    documents = ((each.run_id, _document(store, each, form)) for each in chosen)
    if form not in WRITERS and (len(chosen) != 1 or (path.suffix != ".json" and path.is_dir())):
        return _folder(path, force, ((f"{run_id}.json", data) for run_id, data in documents))
    file = output_of(path, KINDS.get(form, "sheet"), "`output=`", force=force)
    keep_apart([file], others)
    data = WRITERS[form](store.flat(chosen)) if form in WRITERS else next(documents)[1]
    file.save(data)
    return f"{path}: {f'{len(chosen)} rows' if form in WRITERS else '1 result'}, {len(data)} bytes"


def _document(store: Store, each: SelectedRecord, form: str) -> bytes:
    if form == "fio":
        from spindle.formats import fio_json

        return fio_json.write(each.record)
    from spindle.result.document import encode

    return store.document(each.run_id) if each.key is not None else encode(each.record)


def _folder(output: Path, force: bool, files: Iterator[tuple[str, bytes]]) -> str:
    """Write into a new or empty folder, so that nothing is overwritten."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise Usage(f"`output=` {output}: the folder is not empty; name a new one")
    except OSError as error:
        raise Usage(f"`output=` {output}: {error.strerror}; name a folder elsewhere") from None
    count, size = 0, 0
    for name, data in files:
        output_of(output / name, KINDS.get(name.rpartition(".")[2], "sheet"), "`output=`", force=force).save(data)
        count, size = count + 1, size + len(data)
    return f"{output}: {count} files, {size} bytes"
