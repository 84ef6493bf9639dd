r"""
Why is gradient descent in TensorFlow 10-20 times slower than in NumPy?
=======================================================================

A line through 1 000 points, fitted by 100 000 steps of 1e-4, took 4 s in NumPy, 40 s in TensorFlow on a CPU and 80 s
on a GPU. Here are the same steps by the question's own loop and by every backend that can run here, then the two
experiments that answer it: a thousand times the points, and a feature that is standardised first. All start from
W = b = 0 and are compared with the exact iterate.
"""

import math
import time

import numpy as np

from fssgd import LinearRegressorGD, available_backends

BUDGET = 30.0  # seconds; whatever would need more takes fewer steps, and says so

# title, spacing of the points, step, number of steps, standardise?, and the exact W, b and loss of that iterate,
# computed in 50-digit arithmetic from the float64 data and rounded to double.
EXPERIMENTS = [
    ("The question: 1 000 points as they are", 0.1, 1e-4, 100_000, False)
    + (0.9702144726176056, 20.137400165151643, 176.40391807669286),
    ("1 000 000 points as they are", 0.0001, 1e-4, 1_000, False)
    + (1.256984757168086, 1.007829551463324, 269.48216699492696),
    ("1 000 points, standardised", 0.1, 0.1, 100, True)
    + (0.9681795227577183, 20.272985442289627, 176.399315337279),
]


def question_loop(x, y, learning_rate, n_steps, standardize):
    """Descend as the question does: sums written out, and the loss after every step."""
    mean, scale = (x.mean(), x.std()) if standardize else (0.0, 1.0)
    z, n, w, b, loss = (x - mean) / scale, len(x), 0.0, 0.0, None
    fitted = w * z + b
    for _ in range(n_steps):
        slope, level = 2 / n * np.sum(-z * (y - fitted)), 2 / n * np.sum(-(y - fitted))
        w, b = w - learning_rate * slope, b - learning_rate * level
        fitted = w * z + b
        loss = np.sum((y - fitted) ** 2) / n
    return w / scale, b - mean * w / scale, loss


def backend_fit(backend, x, y, learning_rate, n_steps, standardize):
    model = LinearRegressorGD(
        learning_rate=learning_rate, max_iter=n_steps, tol=None, standardize=standardize, backend=backend
    ).fit(x[:, None], y)
    return model.coef_[0], model.intercept_, model.loss_


def measure(descend, n_steps):
    """Return what ``descend(n_steps)`` finds, its time in seconds, and the number of steps taken within BUDGET."""
    descend(10)  # what has to be compiled or imported is, from here on
    start = time.perf_counter()
    descend(100)
    needed = (time.perf_counter() - start) * n_steps / 100
    if needed > BUDGET:
        n_steps = 10 ** max(0, int(math.log10(n_steps * BUDGET / needed)))
    times = []
    while sum(times) < 0.2:
        start = time.perf_counter()
        found = descend(n_steps)
        times.append(time.perf_counter() - start)
    return found, min(times), n_steps


def show(seconds):
    unit, size = next((u, s) for u, s in [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 0)] if seconds >= s)
    return f"{seconds / (size or 1e-9):.3g} {unit}"


def thousands(number):
    return f"{number:,}".replace(",", " ")


taken = {}
for title, spacing, learning_rate, n_steps, standardize, *exact in EXPERIMENTS:
    x = np.arange(100, step=spacing)
    y = x + 20 * np.sin(x / 10) + 15
    print(f"\n{title}: {thousands(n_steps)} steps of {learning_rate:g}")
    print(f"{'':15}{'W':>10}{'b':>11}{'loss':>12}{'time':>10}{'a step':>10}{'error':>10}")
    for name in ("question's loop", *available_backends()):
        def descend(k, name=name):
            return None
