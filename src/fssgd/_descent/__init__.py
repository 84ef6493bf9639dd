"""Which descent is meant: its settings, coordinates, start and tolerance, before any step is taken.

- ``settings``: step and objective as the user sets them; start reading here.
- ``coordinates``: the scaled features and centred targets of a descent, and the way to the user's units and back.
- ``starts``: theta_0. ``tolerance``: what ``tol`` is relative to. ``curvature_bound``: L without a decomposition.
"""
