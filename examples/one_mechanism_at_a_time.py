"""
Which part of the time does which cure take away?
=================================================

Gradient descent in TensorFlow was 10 to 20 times slower than in NumPy, and there are five things one can do about it.
Each is taken alone here: the price of a call, the loop moved into the graph, the graph compiled by XLA, the feature
scaled, and the steps skipped altogether. Times are of this machine, now; the ratios are what carries over.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from fssgd import GradientPath, LinearRegressorGD, available_backends


def line(n_samples):
    x = np.linspace(0, 100, n_samples, endpoint=False)
    return x[:, None], x + 20 * np.sin(x / 10) + 15


def seconds_a_step(backend, n_samples, n_steps):
    """Return the time of a step, without what a first fit has to compile."""
    X, y = line(n_samples)
    model = LinearRegressorGD(backend=backend, learning_rate=1e-4, max_iter=n_steps, tol=None, standardize=False)
    model.fit(X, y)
    begun = time.perf_counter()
    model.fit(X, y)
    return (time.perf_counter() - begun) / n_steps


# %%
# The price of a call
# -------------------
# A step on 10 points has next to nothing to compute. What it takes is the price of the calls that a step is made of,
# and a thousand points hardly add to it; at a million the arithmetic is all there is.
SIZES = [10, 1_000, 100_000, 1_000_000]
STEPS = {10: 500, 1_000: 500, 100_000: 100, 1_000_000: 20}
steppers = [name for name in available_backends() if name != "spectral"]
times = {name: [seconds_a_step(name, size, STEPS[size]) for size in SIZES] for name in steppers}
for name, values in times.items():
    print(f"{name:12}", *(f"{1e6 * value:12.1f} us" for value in values))

figure, ax = plt.subplots(layout="constrained")
for (name, values), marker in zip(times.items(), "osD", strict=False):
    ax.loglog(SIZES, values, marker=marker, label=name)
ax.set(xlabel="points", ylabel="time of a step (s)", title="A call has a price, whatever it has to do")
ax.legend(frameon=False)

# %%
# The loop in the graph, and XLA
# ------------------------------
# One ``Session.run`` a step pays the price every time. A loop inside the graph pays it once, and then the loop's own,
# smaller price for every operation in it. XLA fuses the operations of a step into a few loops over memory.
if "tf-graph" in available_backends():
    from fssgd.backends.tensorflow import TensorFlowGraph

    ways = {
        "Session.run\neach step": ("tf-session", 1_000),
        "tf.while_loop": (TensorFlowGraph(jit_compile=False), 10_000),
        "tf.while_loop\nunder XLA": (TensorFlowGraph(jit_compile=True), 10_000),
        "NumPy": ("numpy", 10_000),
    }
    found = {name: seconds_a_step(backend, 1_000, steps) for name, (backend, steps) in ways.items()}
    figure, ax = plt.subplots(layout="constrained")
    bars = ax.bar(list(found), [1e6 * value for value in found.values()], color="#0072B2")
    ax.bar_label(bars, fmt="%.3g us")
    ax.set(yscale="log", ylabel="time of a step on 1,000 points (us)", title="The same steps, called less often")

# %%
# Scaling
# -------
# The steps above are cheap or dear, but they are the same steps, and far too many are needed. How many is decided by
# the condition number of the Hessian alone.
X, y = line(1_000)
figure, ax = plt.subplots(layout="constrained")
for standardize, step, label in ((False, 1e-4, "as it is, steps of 1e-4"), (True, 0.1, "standardised, steps of 0.1")):
    path = GradientPath.from_arrays(X, y, standardize=standardize, learning_rate=step)
    k = np.unique(np.logspace(0, 6, 300).astype(int))
    ax.loglog(k, path.loss(k) - path.loss(np.inf) + 1e-13, label=label)
    print(f"{label}: condition number {path.spectrum.condition_number:.0f}, {path.steps_to(1e-6)} steps to tol=1e-6")
ax.set(xlabel="steps", ylabel="loss above its minimum", title="What a scaled feature saves", ylim=(1e-12, None))
ax.legend(frameon=False)

# %%
# The closed form
# ---------------
# And no step has to be taken: iterate k of a fixed-step descent on least squares has a formula. It costs the same for
# any k.
for steps in (10**2, 10**5, 10**8):
    model = LinearRegressorGD(learning_rate=1e-4, max_iter=steps, tol=None, standardize=False)
    begun = time.perf_counter()
    model.fit(X, y)
    print(f"{steps:11,} steps in {1e3 * (time.perf_counter() - begun):.2f} ms: loss {model.loss_:.4f}")

plt.show()
