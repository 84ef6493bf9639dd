"""The scikit-learn estimators.

- ``gradient_descent``: ``LinearRegressorGD``; start reading at its ``fit``.
- ``early_stopping``: ``LinearRegressorGDCV``.
- ``fitting``: the one way from prepared data to fitted attributes, which both take.
- ``linear_model``: what a fitted model of either kind does. ``model_file``: a model as JSON.
- ``messages``: errors and warnings of a descent. ``callbacks``: scikit-learn's callback framework.
"""
