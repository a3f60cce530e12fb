"""The store: every result kept, found again, and open to SQL. SQLite in a file, or PostgreSQL by URL.

    with open_store() as store:                      # $SPINDLE_STORE, or the user's data folder
        run_id = store.add(record, tags=["before"])  # on the disk when it returns
        for each in store.select("tag:before"):      # Selected, in order of time
            each.record, each.run_id, each.tags, each.campaign, each.cell, each.block, each.position,
            each.level, each.kind, each.started, each.workload, each.target       # no record is opened for these

    open_store(where, read_only=, create=, say=)     # where: None, a file, postgresql://...; raises StoreError
    needs_store(text) -> bool                        # a selection that is a file needs none
    select(store | None, text) -> list[Selected]     # any selection; `selection.py` has the grammar
    store.add(record, tags=, source=) -> id          # the same record twice is there once
    store.add_all(records, tags=, source=) -> ids    # one transaction
    store.record(id or unique beginning) -> Record;  store.document(id) -> bytes, as stored
    store.ls(selections, last=) -> list[Listed];  store.tag(selection, *names);  store.tags()
    store.metrics(list of Selected, names | None) -> [{name: value}]          # no record is opened: fast
    store.query(sql) -> (columns, rows)
    store.attach(run, file);  store.artefacts(run);  store.artefact(run, name)
    store.take_in(other);  store.check();  store.vacuum();  store.info();  store.remove(store.would_remove(selections))
    store.start_recording(Recording) -> id;  store.add_samples(id, samples)   # what devices did, by interval

Campaigns (`store.campaigns`, campaigns.py)::

    create(name, plan=, seed=, trials=[Planned(block=, cell={factor: level}, detail={})], detail={}) -> Campaign
    find(name) -> Campaign | None;  get(name);  all();  trials(name) -> [Trial];  attempts(name) -> [Attempt]
    fingerprint(name) -> str     # over all that was found, no time of the clock: equal means bit for bit
    with store.campaigns.hold(name) as held:         # nobody else can; StoreRefused where somebody does
        while trial := held.next():                  # the first planned one, now `running`
            held.finish(trial, record, recording)    # the record and `done` in one transaction
            held.reject(trial, "failed", reason, again=True)    # or "invalid", record=...: kept with its reason
        held.extend([Planned(...)]);  held.set_state("done")

A process that dies in the middle leaves its trial `running`; the next `hold` plans it again, as if it had not been
begun. A trial that is `done` is never handed out again.

    place.py       which store is meant              connection.py  pragmas, drivers, errors as lines
    filesystem.py  where WAL is unsafe               database.py    transactions, patience with servers
    schema.py      the tables                        upgrade.py     versions of the schema (migrations/)
    rows.py        record -> rows                    adding.py      records into the tables
    selection.py   the grammar of selections         listing.py     a line each
    metrics.py     figures without records           recordings.py  devices interval by interval
    campaigns.py   trials, exactly once              lock.py        one process at a time
    removal.py     what may go, and goes             artefacts.py   files that go with a record
    export.py      tables for other programs         transfer.py    from one store into another
    check.py       whether all is whole              upkeep.py      vacuum and info
    store.py       every way in                      words.py       text that every database can hold
"""

from .artefacts import Artefact
from .campaigns import Attempt, Campaign, Campaigns, Held, Planned, Trial
from .check import Checked, Problem
from .errors import StoreError, StoreRefused, StoreUsage
from .listing import Listed
from .recordings import MachineSample, Recorded, Recording, Sample
from .removal import Removed
from .selection import Selected, needs_store
from .selection import select_results as select
from .store import Store, open_store
from .transfer import Transferred
from .upkeep import Info

__all__ = [
    "Artefact",
    "Attempt",
    "Campaign",
    "Campaigns",
    "Checked",
    "Held",
    "Info",
    "Listed",
    "MachineSample",
    "Planned",
    "Problem",
    "Recorded",
    "Recording",
    "Removed",
    "Sample",
    "Selected",
    "Store",
    "StoreError",
    "StoreRefused",
    "StoreUsage",
    "Transferred",
    "Trial",
    "needs_store",
    "open_store",
    "select",
]
