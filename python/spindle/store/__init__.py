"""The store of results, with queries in SQL. SQLite in a file, or PostgreSQL by URL.

    with open_store() as store:                      # $SPINDLE_STORE, or the user's data folder
        run_id = store.add(record, tags=["before"])  # on the disk when it returns
        for each in store.select("tag:before"):      # SelectedRecord, in order of time
            each.record, each.run_id, each.tags, each.campaign, each.cell, each.block, each.position,
            each.level, each.kind, each.started, each.workload, each.target       # no record is opened for these

    open_store(where, read_only=, create=, say=)     # where: None, a file, postgresql://...; raises StoreError
    needs_store(text) -> bool                        # a selection that is a file needs none
    select(store | None, text) -> list[SelectedRecord]     # any selection; `selection.py` has the grammar
    store.add(record, tags=, source=) -> id          # the same record is stored once
    store.add_all(records, tags=, source=) -> ids    # one transaction
    store.record(id or unique beginning) -> Record;  store.document(id) -> bytes, as stored
    store.ls(selections, last=) -> list[RecordSummary];  store.tag(selection, *names);  store.tags()
    store.metrics(list of SelectedRecord, names | None) -> [{name: value}]          # no record is opened: fast
    store.query(sql) -> (columns, rows)
    store.attach(run, file);  store.artefacts(run);  store.artefact(run, name)
    store.take_in(other);  store.check();  store.vacuum();  store.info();  store.remove(store.would_remove(selections))
    store.start_recording(Recording) -> id;  store.add_samples(id, samples)   # devices by interval

Campaigns (`store.campaigns`, campaigns.py)::

    create(name, plan=, seed=, trials=[PlannedTrial(block=, cell={factor: level}, detail={})], detail={}) -> Campaign
    find(name) -> Campaign | None;  get(name);  all();  trials(name) -> [Trial];  attempts(name) -> [Attempt]
    fingerprint(name) -> str     # over all results without clock times: equal means bit for bit
    with store.campaigns.hold(name) as held:         # for one process; StoreRefused for others
        while trial := held.next():                  # the first planned one, now `running`
            held.finish(trial, record, recording)    # the record and `done` in one transaction
            held.reject(trial, "failed", reason, again=True)    # or "invalid", record=...: stored with its reason
        held.extend([PlannedTrial(...)]);  held.set_state("done")

A process that dies in the middle leaves its trial `running`; the next `hold` plans it again. A trial
that is `done` never runs again.

    place.py       where the store is                connection.py  pragmas, drivers, errors as lines
    filesystem.py  where WAL is unsafe               database.py    transactions, patience with servers
    schema.py      the tables                        upgrade.py     versions of the schema (migrations/)
    rows.py        record -> rows                    adding.py      records into the tables
    selection.py   the grammar of selections         listing.py     one line for each record
    metrics.py     figures without records           recordings.py  devices interval by interval
    campaigns.py   trials, exactly once              lock.py        one process at a time
    removal.py     removal of results                artefacts.py   files that belong to a record
    export.py      tables for other programs         transfer.py    from one store into another
    check.py       integrity check                   upkeep.py      vacuum and info
    store.py       the interface                     words.py       text that every database can store
"""

from .artefacts import Artefact
from .campaigns import Attempt, Campaign, CampaignHold, Campaigns, PlannedTrial, Trial
from .check import Problem, StoreCheck
from .errors import StoreError, StoreRefused, StoreUsage
from .listing import RecordSummary
from .recordings import MachineSample, Recording, RecordingSummary, Sample
from .removal import Removal
from .selection import SelectedRecord, in_memory, needs_store
from .selection import select_results as select
from .store import Store, open_store
from .transfer import Transfer
from .upkeep import Info

__all__ = [
    "Artefact",
    "Attempt",
    "Campaign",
    "CampaignHold",
    "Campaigns",
    "Info",
    "MachineSample",
    "PlannedTrial",
    "Problem",
    "RecordSummary",
    "Recording",
    "RecordingSummary",
    "Removal",
    "Sample",
    "SelectedRecord",
    "Store",
    "StoreCheck",
    "StoreError",
    "StoreRefused",
    "StoreUsage",
    "Transfer",
    "Trial",
    "in_memory",
    "needs_store",
    "open_store",
    "select",
]
