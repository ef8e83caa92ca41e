"""The subcommands of `hpo`, a module each group."""
