"""Parts of `experiments.scale_out`: settings, tables and page."""
