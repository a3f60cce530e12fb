"""The machine under a target: the layers of a device, its users, and the check that it may be written.

Only `guard` opens a device for writing. The engine gets open descriptors and opens nothing itself.
"""
