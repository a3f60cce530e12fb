"""Charts for telephones: what is beside the drawing fits too."""

from __future__ import annotations

import json
import re

from spindle.report.render.narrow import LEGEND_LETTERS, narrow


def test_names_of_a_legend_that_differ_only_in_their_middle_are_shown_whole_on_several_lines() -> None:
    names = [
        f"array.chunk {chunk} (array.layout f2, iosched.slice_idle as-found, nr_requests {depth}, queue_depth 31)"
        for chunk in ("64KiB", "256KiB")
        for depth in ("as-found", "256", "1024")
    ]
    colour = {"field": "case", "type": "nominal", "scale": {"domain": names}, "legend": {"title": "Case"}}
    whole = {"width": 800, "height": 300, "mark": "line", "encoding": {"color": colour}, "config": {"legend": {}}}
    legend = narrow(whole)["encoding"]["color"]["legend"]
    (lines,) = re.findall(r"^\((\{.*\})\)\[datum.label\]", legend["labelExpr"])
    shown = json.loads(lines)
    assert {name: " ".join(parts) for name, parts in shown.items()} == {name: name for name in names}
    assert max(len(line) for parts in shown.values() for line in parts) <= LEGEND_LETTERS
