"""What the numbers of a descent say: why it is slow, how sure its coefficients are, and pictures of it.

- ``diagnose``: the function; start reading here. ``diagnosis``: its result. ``advice``: what to change.
- ``blame``: the columns that make a descent slow.
- ``summary``: standard errors, t and p values and confidence intervals after any number of steps.
- ``displays``: pictures, after scikit-learn's Display convention.
"""
