"""Sufficient statistics of a least-squares problem: :class:`fssgd.Moments`, and what computes and stores them.

- ``moments``: the public class; start reading here.
- ``sums``: what it holds, and how the sums of two sets of rows are added and subtracted.
- ``row_sums``: sums of arrays of rows, dense and sparse, block by block.
- ``column_statistics``: mean and variance of each column, for data with too many columns for second moments.
- ``checks``: validation of X, y, the sample weights and their sums.
- ``moments_file``: the ``.npz`` file that moments are saved in.
- ``table_spec``: the columns of a table that moments are computed of.
- ``table_registry``: readers of tables by the package of the table, imported when first used.
"""
