"""How many steps to take.

- ``criteria``: each chooses one k; start reading here.
- ``folds``: cross-validation errors from one pass over the rows. ``scores``: what is minimised over k.
- ``integer_search``: the best integer, exactly.
"""
