"""Tuning: the space of settings of a target, the plan of a search over it, and the decision.

See docs/reference/tune.md.

Public signatures::

    # space.py
    def dimensions(target, asked, ...) -> list[Dimension]
    # plan.py
    def plan_text(...) -> str                            # a campaign's plan, carried out by `campaign.execution`
    # decision.py
    def tuning_of(campaign, store) -> Tuning             # better or keep, with its reasons
"""
