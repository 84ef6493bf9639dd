"""The closed form of gradient descent: every iterate from one decomposition.

- ``closed_form``: the formulas, for any k; start reading here. ``gradient_path``: the class that users see.
- ``decomposition``, ``spectrum``: from moments to the loss in the eigenbasis of its Hessian.
- ``step_counts``, ``spectral_filter``, ``power_sums``: k, its effect along an eigenvector, and sums over them.
- ``smoother``: degrees of freedom and covariances. ``error_curve``: the error of every iterate on other rows.
"""
