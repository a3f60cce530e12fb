"""`python -m spindle`."""

from spindle.cli import main

main()
