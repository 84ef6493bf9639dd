"""
Why is gradient descent in TensorFlow 10-20 times slower than in NumPy?
=======================================================================

So somebody asked who had fitted a line to 1,000 points by 100,000 steps of 1e-4: 4 s in NumPy, 40 s in TensorFlow on a
CPU, 80 s on a GPU. Here the question's own loop and every backend at hand take the same steps from W = b = 0, on those
points, on fewer, on more, and on a standardised feature. The error is the largest relative one of W, b and the loss.
"""

import importlib.util
import math
import time
from functools import partial

import numpy as np

from fssgd import LinearRegressorGD, available_backends

BUDGET = 30.0  # seconds; what would need more takes fewer steps, and says so

# Spacing of the points, step, number of steps, standardised or not; then W, b and loss of exactly that iterate,
# computed from the float64 data in 50-digit arithmetic and rounded to double.
EXPERIMENTS = {
    "1,000 points": (0.1, 1e-4, 100_000, False, (0.9702144726176056, 20.137400165151643, 176.40391807669286)),
    "10 points": (10.0, 1e-4, 10_000, False, (1.181933920101274, 7.837615516471716, 201.2161864203476)),
    "1,000,000 points": (1e-4, 1e-4, 1_000, False, (1.256984757168086, 1.007829551463324, 269.48216699492696)),
    "1,000 points, standardised": (0.1, 0.1, 100, True, (0.9681795227577183, 20.272985442289627, 176.399315337279)),
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


def fssgd_fit(backend, x, y, learning_rate, standardize, n_steps):
    settings = {"learning_rate": learning_rate, "max_iter": n_steps, "tol": None, "standardize": standardize}
    model = LinearRegressorGD(backend=backend, **settings).fit(x[:, None], y)
    return model.coef_[0], model.intercept_, model.loss_


def measure(descend, n_steps):
    """Return what ``descend(n_steps)`` finds, its seconds, and n_steps, or as many of them as fit into BUDGET."""
    descend(10)  # whatever has to be imported or compiled is, from here on
    start = time.perf_counter()
    descend(100)
    needed = (time.perf_counter() - start) * n_steps / 100
    if needed > BUDGET:
        n_steps = 10 ** int(math.log10(n_steps * BUDGET / needed))
    times = []
    while sum(times) < 0.2:
        start = time.perf_counter()
        found = descend(n_steps)
        times.append(time.perf_counter() - start)
    return found, min(times), n_steps


descents = {"question's loop": question_loop} | {name: partial(fssgd_fit, name) for name in available_backends()}
results = {}
for title, (spacing, learning_rate, n_steps, standardize, exact) in EXPERIMENTS.items():
    x = np.arange(100, step=spacing)
    y = x + 20 * np.sin(x / 10) + 15
    print(f"\n{title}, {n_steps:,} steps of {learning_rate:g}")
    print(f"{'':16}{'W':>10}{'b':>11}{'loss':>12}{'time (s)':>10}{'a step (us)':>13}  error")
    for name, descend in descents.items():
        found, seconds, done = measure(partial(descend, x, y, learning_rate, standardize), n_steps)
        loss, a_step, error = found[2], 1e6 * seconds / done, np.abs(np.divide(found, exact) - 1).max()
        results[title, name] = a_step, loss
        note = f"{error:.0e}" if done == n_steps else f"{done:,} of {n_steps:,} steps"
        print(f"{name:16}{found[0]:10.6f}{found[1]:11.6f}{loss:12.6f}{seconds:10.4f}{a_step:13.3f}  {note}")

question, ten, million, _ = (results[title, "question's loop"][0] for title in EXPERIMENTS)
(at_once, raw_loss), *_, (_, scaled_loss) = (results[title, "spectral"] for title in EXPERIMENTS)
prices = ", ".join(f"{results['10 points', name][0]:,.1f} us ({name})" for name in descents if name != "spectral")
missing = [name for name in ("tf-graph", "tf-session") if name not in descents]
if missing:
    print(f"\n{', '.join(missing)}: not installed (pip install 'fssgd[tensorflow]')")
print(f"""
First answer: a call has its price, however little it has to do. A step on 10 points takes
{prices},
and in the loop that is {ten / question:.0%} of what it takes on 1,000. The question's calls into TensorFlow took 400 us
each, by its own account. On 1,000,000 points a step of the loop takes {million:.0f} us, and the price is lost in it.
The closed form pays it once for all 100,000 steps, and is {question / at_once:.0f} times faster than the loop.

Second answer: 100 steps on the standardised feature reach a loss of {scaled_loss:.4f}, 100,000 on the raw one
{raw_loss:.4f}. Scaling does better with a thousandth of the steps.""")

if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(layout="constrained")
    sizes, titles = [10, 1_000, 1_000_000], ["10 points", "1,000 points", "1,000,000 points"]
    for name in (one for one in descents if one != "spectral"):
        ax.loglog(sizes, [results[title, name][0] for title in titles], "o-", label=name)
    ax.set(xlabel="points", ylabel="time of a step (us)", title="What a step costs, by who takes it")
    ax.legend(frameon=False)
    plt.show()
