"""The lab: the real kernel in virtual time on the modelled drives of `crates/lab`.

| module | role |
|---|---|
| `source` | the kernel's source: Debian's package or a folder |
| `kernel` | builds the kernel, once for each version, configuration and HZ |
| `changes` | the changes of the kernel's source |
| `programs` | programs of this system with their libraries, and the packages that bring them |
| `initramfs` | the system in the lab: programs and `image/init.sh`, as an archive (`cpio`) |
| `cache` | where kernels and archives are kept |
| `janitor` | folders and processes that disappear even if Spindle is killed |
| `machine` | one boot: sockets, the kernel's process, and its end in all cases |
| `assembly` | a machine file's array, queues and file system as commands |
| `load` | one workload in the lab, by spindle-agent |
| `loads` | the load program of measured cases (`spindle.validation.kernel`) |
| `session` | `exec` and `shell` |

`image/` contains what goes into the lab as it is: the kernel's configuration, the first program, and
the source of the load program.
"""
