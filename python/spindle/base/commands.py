"""Command lines of Spindle for a shell: in scripts, in recipes, as advice to copy.

The only module below `cli/` that writes an option, always from the key of the library: texts name the key.
"""

from __future__ import annotations

import json
import shlex

from spindle import _core


def option(key: str) -> str:
    """The option of a key: `verify_state` is --verify-state; `log.size`, of one stream, is set with --set log.size."""
    return f"--set {key}" if "." in key else f"--{key.replace('_', '-')}"


def switched_off(key: str) -> str:
    """The option that sets a key of a workload to false: `direct` is --buffered, `end_fsync` --no-end-fsync."""
    opposite = {each["name"]: each.get("opposite") for each in json.loads(_core.workload_keys())}
    return option(opposite.get(key) or f"no_{key}")


def given(**keys: object) -> list[str]:
    """The options that give these values, as words: nothing for None and False, the bare option for True, the option
    once for each value of a tuple."""
    words: list[str] = []
    for key, value in keys.items():
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None and each is not False:
                words += [option(key)] if each is True else [option(key), str(each)]
    return words


def shell(*words: object) -> str:
    """A command line of these words, quoted: names may contain anything."""
    return shlex.join(str(word) for word in words)
