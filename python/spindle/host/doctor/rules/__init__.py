"""The rules, in the order in which a person should read them: data at risk, what is degraded, geometry, settings."""

from __future__ import annotations

from ..rule import Rule
from . import (
    atime,
    barriers,
    discard,
    drive_link,
    file_system_errors,
    max_sectors,
    md_bitmap,
    md_degraded,
    md_member,
    md_mismatch,
    md_sync,
    multipath,
    ncq,
    partition_alignment,
    queue_requests,
    raid_unit,
    read_ahead,
    rotational,
    scheduler,
    shared_link,
    smart,
    space,
    stripe_cache,
    stripe_geometry,
    temperature,
    unequal_members,
    ure,
    write_cache,
)

RULES: tuple[Rule, ...] = tuple(
    module.RULE
    for module in (
        md_degraded,
        raid_unit,
        smart,
        md_member,
        file_system_errors,
        barriers,
        write_cache,
        multipath,
        ure,
        md_mismatch,
        md_sync,
        temperature,
        partition_alignment,
        stripe_geometry,
        unequal_members,
        shared_link,
        drive_link,
        stripe_cache,
        md_bitmap,
        read_ahead,
        scheduler,
        queue_requests,
        max_sectors,
        ncq,
        rotational,
        atime,
        discard,
        space,
    )
)

__all__ = ["RULES"]
