"""Files, threads, optional packages and messages: what the other folders share, without any mathematics.

- ``optional``: import of packages that may be missing, with the pip command in the error; start reading here.
- ``registry``: names of classes and functions that are imported when first used.
- ``atomic_files``: files that are either written completely or not at all.
- ``saved_files``: reading of the JSON and ``.npz`` files that fssgd saves, damaged ones included.
- ``jsonable``: conversion of NumPy values to JSON.
- ``blas_threads``: a context in which BLAS uses one thread.
- ``sklearn_private``: all that fssgd uses of scikit-learn's private names.
- ``words``: names of columns in messages, and warnings that point at the user's line.
"""
