"""A job file as sections of options: made by the generator, and reduced to the smallest that still differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Options = dict[str, str]


@dataclass(frozen=True)
class JobFile:
    """Sections in order; the order of the options is that of the file."""

    sections: tuple[tuple[str, Options], ...]
    folder: bool = False
    """On files of a file system; otherwise on a block device."""
    common: Options = field(default_factory=dict)
    """Options of [global]."""

    def text(self, device: str) -> str:
        """`device`: the target of jobs without files of their own."""
        lines = ["[global]", *([] if self.folder else [f"filename={device}"]), *_lines(self.common)]
        for name, options in self.sections:
            lines += [f"[{name}]", *_lines(options)]
        return "\n".join(lines) + "\n"

    def options(self) -> set[str]:
        """Names of the options that are given."""
        return {name for _, options in (("", self.common), *self.sections) for name in options}

    def smaller(self) -> Iterator[JobFile]:
        """The same with a section, an option or a part of a value less."""
        if len(self.sections) > 1:
            for at in range(len(self.sections)):
                yield JobFile(self.sections[:at] + self.sections[at + 1 :], self.folder, self.common)
        for name in self.common:
            if name == "direct":
                continue  # without it the kernel sees other requests
            yield JobFile(self.sections, self.folder, _without(self.common, name))
        for at, (section, options) in enumerate(self.sections):
            for name in options:
                changed = (section, _without(options, name))
                yield JobFile((*self.sections[:at], changed, *self.sections[at + 1 :]), self.folder, self.common)


def _lines(options: Options) -> list[str]:
    return [f"{name}={value}" if value else name for name, value in options.items()]


def _without(options: Options, name: str) -> Options:
    return {key: value for key, value in options.items() if key != name}
