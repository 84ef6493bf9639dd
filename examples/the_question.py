r"""
Why is gradient descent in TensorFlow 10-20 times slower than in NumPy?
=======================================================================

The question: a line through 1 000 points, by 100 000 steps of 1e-4. It took 4 s in NumPy, 40 s in TensorFlow on a CPU
and 80 s on a GPU. Here the question's own loop and every backend that can run on this machine take the same steps, then
the two experiments that answer it: a thousand times the points, and a feature that is standardised first. All of them
start from W = b = 0, and their error is against the exact iterate: the largest relative one of W, b and the loss.
"""

import math
import time
from functools import partial

import numpy as np

from fssgd import LinearRegressorGD, available_backends

BUDGET = 30.0  # seconds; what would need more takes fewer steps, and says so

# Spacing of the points, step, number of steps, standardised or not; then the W, b and loss of that very iterate,
# computed from the float64 data in 50-digit arithmetic and rounded to double.
EXPERIMENTS = {
    "1 000 points": (0.1, 1e-4, 100_000, False, (0.9702144726176056, 20.137400165151643, 176.40391807669286)),
    "1 000 000 points": (1e-4, 1e-4, 1_000, False, (1.256984757168086, 1.007829551463324, 269.48216699492696)),
    "1 000 points, standardised": (0.1, 0.1, 100, True, (0.9681795227577183, 20.272985442289627, 176.399315337279)),
}


def question_loop(x, y, learning_rate, standardize, n_steps):
    """Descend as the question does: sums written out, and the loss after every step."""
    mean, scale = (x.mean(), x.std()) if standardize else (0.0, 1.0)
    z, n, w, b, loss = (x - mean) / scale, len(x), 0.0, 0.0, math.nan
    fitted = w * z + b
    for _ in range(n_steps):
        slope, level = 2 / n * np.sum(-z * (y - fitted)), 2 / n * np.sum(-(y - fitted))
        w, b = w - learning_rate * slope, b - learning_rate * level
        fitted = w * z + b
        loss = np.sum((y - fitted) ** 2) / n
    return w / scale, b - mean * w / scale, loss


def backend_fit(backend, x, y, learning_rate, standardize, n_steps):
    settings = {"learning_rate": learning_rate, "max_iter": n_steps, "tol": None, "standardize": standardize}
    model = LinearRegressorGD(backend=backend, **settings).fit(x[:, None], y)
    return model.coef_[0], model.intercept_, model.loss_


def timed(run, *problem, n_steps):
    """Return what a run finds, its seconds, and its steps: as many of n_steps as fit into BUDGET."""
    run(*problem, 10)  # whatever has to be imported or compiled is, from here on
    times, start = [], time.perf_counter()
    run(*problem, 100)
    needed = (time.perf_counter() - start) * n_steps / 100
    if needed > BUDGET:
        n_steps = 10 ** int(math.log10(n_steps * BUDGET / needed))
    while sum(times) < 0.2:
        start = time.perf_counter()
        found = run(*problem, n_steps)
        times.append(time.perf_counter() - start)
    return found, min(times), n_steps


def duration(seconds):
    size, unit = next(pair for pair in ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (0, "ns")) if seconds >= pair[0])
    return f"{seconds / (size or 1e-9):.3g} {unit}"


def points(spacing):
    x = np.arange(100, step=spacing)
    return x, x + 20 * np.sin(x / 10) + 15


runs = {"question's loop": question_loop, **{name: partial(backend_fit, name) for name in available_backends()}}
losses, times = {}, {}
for title, (spacing, learning_rate, n_steps, standardize, exact) in EXPERIMENTS.items():
    print(f"\n{title}, {n_steps:_} steps of {learning_rate:g}".replace("_", " "))
    print(f"{'':16}{'W':>9}{'b':>11}{'loss':>12}{'time':>10}{'a step':>10}   error")
    for name, run in runs.items():
        found, seconds, done = timed(run, *points(spacing), learning_rate, standardize, n_steps=n_steps)
        (w, b, loss), a_step = found, seconds / done
        losses[title, name], times[title, name] = loss, seconds * n_steps / done
        error = f"{np.abs(np.divide(found, exact) - 1).max():.0e}"
        if done < n_steps:
            error = f"{done:_} of {n_steps:_} steps".replace("_", " ")
        print(f"{name:16}{w:9.6f}{b:11.6f}{loss:12.6f}{duration(seconds):>10}{duration(a_step):>10}   {error}")
        assert done < n_steps or np.allclose(found, exact, rtol=1e-9, atol=0)

raw, many, scaled = EXPERIMENTS
few = ", ".join(
    f"{duration(timed(run, *points(10), 1e-4, False, n_steps=10_000)[1] / 10_000)} ({name})"
    for name, run in runs.items()
)
loop = {title: times[title, "question's loop"] for title in EXPERIMENTS}
print(f"""
First answer: every call has its price. On ten points, with next to nothing to compute, a step still takes
{few}.
A Session.run in the question's TensorFlow costs 400 us; a thousand times the points hide it, as a step of the loop then
takes {duration(loop[many] / 1_000)}. The cure is fewer calls: the closed form needs one for all 100 000 steps and is {loop[raw] / times[raw, "spectral"]:.0f} times faster.

Second answer: scaling. 100 steps on the standardised feature end at a loss of {losses[scaled, "spectral"]:.4f}, lower than the
{losses[raw, "spectral"]:.4f} of 100 000 steps on the raw one, and take the same loop {duration(loop[scaled])} instead of {duration(loop[raw])}.""")
