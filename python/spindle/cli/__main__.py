"""`python -m spindle.cli`."""

from spindle.cli.main import main

main()
