"""`python -m spindle.cli`."""

from spindle.cli import main

main()
