"""Drivers in processes of their own: in the background of this machine, or on a Ray cluster."""
