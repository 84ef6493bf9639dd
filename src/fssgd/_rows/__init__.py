"""Rows of data that can be stepped over: arrays in memory, and the partitions of Dask collections.

- ``source``: the two protocols, rows before and after the coordinates of a descent are known; start reading here.
- ``arrays``, ``design``: rows in memory, and the weighted design matrix of a descent on them.
- ``dask_source``: the same for Dask collections; ``dask_arrays`` prepares their arrays, ``dask_graph`` adds up.
"""
