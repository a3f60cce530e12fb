"""Knobs: settings that can be changed while the machine runs, and undone afterwards. See docs/reference/knobs.md.

Only `files.write_kernel_file` writes to /sys and /proc. Public signatures::

    # catalogue.py
    KNOBS: tuple[Knob, ...]            # scope, name, where, values, unit, about, since ...
    def knob(name) -> Knob             # KnobUsage with the nearest name

    # places.py
    def named(name, machine=...) -> KnobFolder          # 'loop3', '/dev/sda1', 'vm', 'cpu0', 'irq35'
    class KnobFolder: .knobs(files), .value(knob, files), .offered(knob, files)

    # asking.py, profile.py
    def settings(device, words, machine=...) -> list[Setting]   # parses words NAME=VALUE

    # session.py
    class Session(kind, machine=..., files=...):   # context manager: undoes at its end, unless keep() was called
        def change(settings) -> list[ChangeResult] # journalled, written, read back; KnobRefusal undoes
        def keep(self) -> None

    # restore.py
    def restore(machine=..., files=..., persisted=...) -> Restoration   # after kill -9, power loss, reboot, `knobs set`
    def pending(...) -> Restoration                                     # the same without any change

    # persist.py
    def drafts(settings, root, tuned=...) -> list[BootFile];  def write(drafts, root);  def remove(root) -> list[Path]
"""
