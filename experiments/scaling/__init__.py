"""What `experiments.scale_out` is made of: its settings, tables and page."""
