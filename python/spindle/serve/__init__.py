"""A modelled drive as a disk in real time (`crates/disk/src/serve`).

| module | role |
|---|---|
| `model` | the drive: a name, a sheet or a service time, and keys of `[[drive]]` |
| `contents` | the file of the contents |
| `place` | sockets and mounts: what is in the way, and what is removed at the end |
| `session` | one server from start to end, and its figures |
"""
