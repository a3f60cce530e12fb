"""The drive to be served."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from spindle import _core
from spindle.base.errors import ConfigError

SERVICE = "service"
"""The model that is only a service time, as in machine files."""


def modelled(model: str, size: str | None, keys: Mapping[str, str | int | bool]) -> _core.ModelledDrive:
    """A drive of the catalogue, of a sheet (a path, or a name that ends in `.toml`), or `service`. `keys`: those of a
    `[[drive]]`. Raises ConfigError.
    """
    given = dict(keys)
    if size is not None:
        given |= {"capacity": size} if model == SERVICE else {"region": f"0-{size}"}
    sheet = _sheet(model) if "/" in model or model.endswith(".toml") else None
    if sheet is not None:
        given["model"] = _core.ModelledDrive.sheet_name(sheet, model)
    elif model != SERVICE:
        given["model"] = model
    elif "service" not in given:
        raise ConfigError("model service: needs a service time; give `key=service=1ms`")
    text = "".join(f"{_word(key)} = {_value(value)}\n" for key, value in given.items())
    return _core.ModelledDrive.parse(text, "drive", sheet, model)


def _sheet(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give a sheet as in catalogue/drives") from None


def _word(key: str) -> str:
    """A key of TOML; JSON writes texts as TOML does."""
    return json.dumps(key)


def _value(value: str | int | bool) -> str:
    """A value of TOML: a text that is a number or a truth value is one."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if text in ("true", "false") or text.isdecimal() else json.dumps(text)
