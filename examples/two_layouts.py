"""Which layout of six disks suits a load better, and how sure is that? Trials of both, compared and reported.

python examples/two_layouts.py
"""

import spindle

FAR, PARITY = "six-sata-f2", "six-sata-raid5"

with spindle.open_store("layouts.db") as store:
    for seed in range(1, 6):  # another seed, another order of requests: five trials of each
        for machine in (FAR, PARITY):
            spindle.run("oltp", machine, seed=seed, seconds=10, store=store, tags=[machine])
    found = spindle.compare(store[f"tag:{FAR}"], store[f"tag:{PARITY}"])

for row in found.differences:
    sure = "significant" if row["significant"] else "may be chance"
    print(f"{row['metric']:<14} RAID5 against RAID10: {row['change']:+.0%} ({sure})")

found.report("layouts.html", force=True)
print("layouts.html has the report")
