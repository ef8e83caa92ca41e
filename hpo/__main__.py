"""`python -m hpo`: the `hpo` command."""

from hpo.cli import main

if __name__ == "__main__":
    main()
