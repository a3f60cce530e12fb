"""The file of hosts, clocks, and slow hosts among their peers: without any host."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from spindle.fleet import comparison
from spindle.fleet.clock import offset_of
from spindle.fleet.hosts import Consent, consents, parsed
from spindle.run.errors import Usage
from tests.program import Invoke

HOSTS = """\
[defaults]
target = "/dev/sdb"
options = ["-p", "2222"]

[[host]]
name = "db1"
ssh = "root@192.0.2.1"

[[host]]
name = "db2"
target = "/srv"
create = "4GiB"
"""


TWINS = """\
[[host]]
name = "a"
ssh = "root@h"
target = "/dev/sdb"
[[host]]
name = "b"
ssh = "root@h"
target = "/dev/sdb"
"""


@pytest.mark.parametrize(
    ("given", "ssh"),
    [
        ("root@2001:db8::1", "root@2001:db8::1"),
        ("root@[2001:db8::1]", "root@2001:db8::1"),
        ("[fe80::1%eth0]", "fe80::1%eth0"),
    ],
)
def test_addresses_of_ipv6_are_written_with_and_without_brackets(given: str, ssh: str) -> None:
    (host,) = parsed(f'[[host]]\nname = "a"\nssh = "{given}"\ntarget = "/dev/sdb"\n', "hosts.toml")
    assert host.ssh == ssh


def test_options_of_ssh_are_its_own() -> None:
    text = '[[host]]\nname = "a"\ntarget = "/x"\noptions = ["-4vp", "22", "-oCompression=yes", "-J", "jump"]\n'
    assert parsed(text, "hosts.toml")[0].options == ("-4vp", "22", "-oCompression=yes", "-J", "jump")


def test_defaults_hold_unless_a_host_says_otherwise() -> None:
    one, two = parsed(HOSTS, "hosts.toml")
    assert (one.name, one.ssh, one.target, one.create) == ("db1", "root@192.0.2.1", "/dev/sdb", None)
    assert (two.ssh, two.target, two.create, two.options) == ("db2", "/srv", "4GiB", ("-p", "2222"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no hosts"),
        ("[[host]]\n", "hosts.toml:1: host: a host without a name"),
        ('[[host]]\nname = "a"\n', "a has no target"),
        ('[[host]]\nname = "a"\ntarget = "/dev/sdb"\n[[host]]\nname = "a"\ntarget = "/x"\n', "a is there twice"),
        ('[[host]]\nname = "a"\ntargte = "/dev/sdb"\n', "did you mean `target`"),
        ('[[host]]\nname = "a b"\ntarget = "/dev/sdb"\n', "not a name"),
        ('[[host]]\nname = "a"\nssh = "-oProxyCommand=x"\ntarget = "/dev/sdb"\n', "not a destination"),
        ('[[host]]\nname = "a"\ntarget = "/x"\ncreate = "many"\n', "many"),
        ('[defaults]\nname = "a"\n[[host]]\nname = "a"\ntarget = "/x"\n', "belongs to one host"),
        ("[[host]\n", "not TOML"),
        ('[[host]]\nname = "a"\ntarget = "/x"\n[[host]]\nname = "a"\ntarget = "/y"\n', "hosts.toml:5: host.name"),
        ('[[host]]\nssh = "2001:db8::1"\ntarget = "/x"\n', "give the host a `name` beside its address"),
        ('[[host]]\nname = "a"\noptions = ["h2", "true"]\ntarget = "/x"\n', "`h2` is no option of ssh"),
        ('[[host]]\nname = "a"\noptions = ["-4", "-p"]\ntarget = "/x"\n', "-p: its value is missing"),
        ('[[host]]\nname = "a"\noptions = ["--"]\ntarget = "/x"\n', "`--` is no option of ssh"),
        ('[[host]]\nname = "a"\ntarget = ""\n', "host.target: is empty"),
        ('[[host]]\nname = "a"\ntarget = "/x"\ncreate = "0"\n', "must be above 0"),
        (TWINS, "hosts.toml:8: host.target: /dev/sdb is measured as a already"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_place(text: str, named: str, here: Path, invoke: Invoke) -> None:
    (here / "hosts.toml").write_text(text)
    ended = invoke("fleet", "run", "randomio", "--hosts", "hosts.toml", "--store", "store.db")
    assert ended.status == 2
    assert named in ended.complaint
    assert "hosts.toml" in ended.complaint
    assert not (here / "store.db").exists()


def test_consent_names_host_and_device() -> None:
    hosts = parsed(HOSTS, "hosts.toml")
    assert consents(hosts, ["db1:/dev/sdb"], ["db1"], []) == {"db1": Consent(erase="/dev/sdb", content=True)}
    for erase, content, named in [
        (["/dev/sdb"], [], "HOST:DEVICE"),
        (["db3:/dev/sdb"], [], "no such host"),
        (["db1:/dev/sdb", "db1:/dev/sdc"], [], "already"),
        ([], ["db1"], "goes with"),
    ]:
        with pytest.raises(Usage, match=named):
            consents(hosts, erase, content, [])


@pytest.mark.parametrize(
    ("erase", "named"), [((), "agree with"), (("--erase", "db1:/dev/sdc"), "its target is /dev/sdb")]
)
def test_a_load_that_writes_needs_consent_before_any_host_is_asked(
    erase: tuple[str, ...], named: str, here: Path, invoke: Invoke
) -> None:
    (here / "hosts.toml").write_text(HOSTS)
    ended = invoke("fleet", "run", "randomio", "--hosts", "hosts.toml", "--store", "store.db", *erase)
    assert ended.status == 2
    assert named in ended.complaint


def test_the_shortest_round_trip_gives_the_clock() -> None:
    trips = [(1000, 51_600, 2200), (3000, 53_100, 3200), (4000, 57_000, 9000)]
    found = offset_of(trips)
    assert (found.offset_ns, found.error_ns) == (50_000, 100)
    assert found.there(3100) == 53_100
    assert found.here(53_100) == 3100


def slow(rates: list[float]) -> list[str]:
    """Hosts that are slow, of one run with these rates."""
    measured = {f"h{number}": {"iops": rate, "read.p99_ns": 1e9 / rate} for number, rate in enumerate(rates)}
    middle = {"iops": median(rates), "read.p99_ns": median(1e9 / rate for rate in rates)}
    return [host for host in measured if comparison._slow(host, measured, middle)]


def test_the_slow_host_among_a_hundred_is_named_and_no_other() -> None:
    rates = [1000.0 + 7 * ((37 * number) % 11 - 5) for number in range(100)]
    rates[63] = 850.0
    assert slow(rates) == ["h63"]


@pytest.mark.parametrize("rates", [[100.0] * 8, [100.0, 100.2, 99.9, 100.1, 97.0], [100.0, 50.0, 100.0]])
def test_equal_hosts_small_differences_and_few_hosts_name_nobody(rates: list[float]) -> None:
    assert slow(rates) == []
