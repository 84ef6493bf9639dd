"""Rows that can be stepped over: arrays in memory, and the partitions of Dask collections."""
