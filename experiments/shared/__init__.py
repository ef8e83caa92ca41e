"""Data, models, options, tables and pictures that several scripts share."""
