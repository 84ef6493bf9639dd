"""The two commands that measure: demo, the question's experiment, and bench, a step against the number of rows.

- ``demo``, ``bench``: the commands; start reading at ``demo``.
- ``question``: the data of the question, and its own NumPy loop.
- ``descent_timing``, ``step_timing``: the time of a descent, and of a step. ``machine``: where they were taken.
- ``figures``, ``output``: pictures, tables and JSON.
"""
