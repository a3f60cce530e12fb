"""One load on many hosts at one instant.

`ssh` starts `spindle-agent session` on each host; orders and reports are lines of JSON on its standard streams, so no
host listens. See docs/reference/fleet.md.

| module | what |
|---|---|
| `hosts` | the file of hosts: names, addresses, targets |
| `channel` | one host's agent: its connection, orders and reports |
| `commands` | command lines of ssh and spindle-agent |
| `clock` | how far a host's clock is from this one |
| `launch` | the run: connect, claim, start together, collect |
| `crew` | the hosts of a campaign: a launch for each step of it |
| `monitoring` | the activity of the hosts, interval by interval |
| `comparison` | the hosts of a run side by side: merged figures, hosts that are slower than their peers |
"""
