"""The whole block stack of a machine, or of a captured tree, as one inventory: known values, and reasons for unknown
ones.


Data flows one way: a `tree.Tree` (the running machine, or a capture in memory) gives the text of kernel files and
tools; `reading.Reading` converts it to typed values and notes the reason for each missing one; one module for each
layer fills the structs of `model`; `gather` joins them to an `Inventory`. Nothing here opens anything for writing.

Public::

    inspect_stack(target: str | None, tree: Tree) -> Inventory
    running() -> Tree                      # this machine
    open_capture(path: str) -> Tree        # a folder or a tar
    capture(target, mask_serials) -> Capture
"""

from .capture import Capture, capture, open_capture
from .gather import inspect_stack
from .model import Inventory, schema
from .tree import Tree, running

__all__ = ["Capture", "Inventory", "Tree", "capture", "inspect_stack", "open_capture", "running", "schema"]
