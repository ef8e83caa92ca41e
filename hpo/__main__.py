"""`python -m hpo`: the `hpo` command."""

from hpo.cli import main

main()
