"""Which descent is meant: its settings, coordinates, start and tolerance, before any step is taken."""
