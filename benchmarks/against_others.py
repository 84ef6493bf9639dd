"""Least squares on one data set by every library at hand: time, memory beside the data, error reached.

    python benchmarks/against_others.py [--rows 200000] [--features 100] [--rounds 5]

Each fit runs in a process of its own, on the same data, after a small fit to warm up; libraries take turns, so that a
machine that slows down slows all of them. The error is the distance of the coefficients from least squares, relative
to their norm. Methods that step are given standardised features and 200 steps (SGDRegressor and PyTorch's minibatches:
passes) of a step that suits them; what is left of the error is theirs. Libraries that are not installed are left out:

    pip install scikit-learn-intelex glum statsmodels mlxtend optax jax torch
"""

from __future__ import annotations

import argparse
import csv
from importlib.metadata import PackageNotFoundError
from typing import Any

import numpy as np
from measure import RESULTS, in_process, machine, save, spread

DATA = """
import json, time
import numpy as np
rng = np.random.default_rng(0)
n, p = {rows}, {features}
X = rng.normal(size=(n, p))
y = X @ rng.normal(size=p) + 3 + rng.normal(size=n)
"""
MEASURE = """
fit(X[:2000].copy(), y[:2000].copy())
before, begun = start(), time.perf_counter()
coef = np.ravel(fit(X, y))
took, memory = time.perf_counter() - begun, peak_since(before)
exact = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
error = float(np.linalg.norm(coef - exact) / np.linalg.norm(exact))
print(json.dumps(dict(seconds=took, megabytes=max(memory, 0.0), error=error)))
"""

# name: (package, code that defines fit(X, y) -> coefficients)
FITS = {
    "fssgd LinearRegressorGD()": (
        "fssgd",
        "from fssgd import LinearRegressorGD\nfit = lambda X, y: LinearRegressorGD().fit(X, y).coef_",
    ),
    "fssgd, max_iter=inf": (
        "fssgd",
        "from fssgd import LinearRegressorGD\n"
        "fit = lambda X, y: LinearRegressorGD(max_iter=np.inf, tol=None).fit(X, y).coef_",
    ),
    "fssgd, 200 steps in NumPy": (
        "fssgd",
        "from fssgd import LinearRegressorGD\n"
        "fit = lambda X, y: LinearRegressorGD(max_iter=200, tol=None, backend='numpy').fit(X, y).coef_",
    ),
    "scikit-learn LinearRegression": (
        "scikit-learn",
        "from sklearn.linear_model import LinearRegression\nfit = lambda X, y: LinearRegression().fit(X, y).coef_",
    ),
    "scikit-learn Ridge(0, cholesky)": (
        "scikit-learn",
        "from sklearn.linear_model import Ridge\n"
        "fit = lambda X, y: Ridge(alpha=0.0, solver='cholesky').fit(X, y).coef_",
    ),
    "scikit-learn SGDRegressor, 200 passes": (
        "scikit-learn",
        "from sklearn.linear_model import SGDRegressor\n"
        "fit = lambda X, y: SGDRegressor(penalty=None, max_iter=200, random_state=0).fit(X, y).coef_",
    ),
    "sklearnex LinearRegression": (
        "scikit-learn-intelex",
        "from sklearnex.linear_model import LinearRegression\nfit = lambda X, y: LinearRegression().fit(X, y).coef_",
    ),
    "sklearnex IncrementalLinearRegression": (
        "scikit-learn-intelex",
        "from sklearnex.linear_model import IncrementalLinearRegression\n"
        "def fit(X, y):\n"
        "    model = IncrementalLinearRegression()\n"
        "    for i in range(0, len(X), 65_536):\n"
        "        model.partial_fit(X[i:i + 65_536], y[i:i + 65_536])\n"
        "    return model.coef_",
    ),
    "fssgd partial_fit": (
        "fssgd",
        "from fssgd import LinearRegressorGD\n"
        "def fit(X, y):\n"
        "    model = LinearRegressorGD()\n"
        "    for i in range(0, len(X), 65_536):\n"
        "        model.partial_fit(X[i:i + 65_536], y[i:i + 65_536])\n"
        "    return model.coef_",
    ),
    "glum GeneralizedLinearRegressor": (
        "glum",
        "from glum import GeneralizedLinearRegressor\n"
        "fit = lambda X, y: GeneralizedLinearRegressor(family='normal', alpha=0).fit(X, y).coef_",
    ),
    "statsmodels OLS": (
        "statsmodels",
        "import statsmodels.api as sm\nfit = lambda X, y: sm.OLS(y, sm.add_constant(X)).fit().params[1:]",
    ),
    "mlxtend gradient descent, 200 steps": (
        "mlxtend",
        "from mlxtend.regressor import LinearRegression\n"
        "def fit(X, y):\n"
        "    mean, scale = X.mean(axis=0), X.std(axis=0)\n"
        "    model = LinearRegression(method='sgd', eta=0.5 / len(y), epochs=200, minibatches=1, random_seed=0)\n"
        "    return model.fit((X - mean) / scale, y).w_[:, 0] / scale",
    ),
    "optax.sgd in a JAX loop, 200 steps, with compiling": (
        "optax",
        "import jax, jax.numpy as jnp, optax\n"
        "jax.config.update('jax_enable_x64', True)\n"
        "optimiser = optax.sgd(0.4)\n"
        "@jax.jit\n"
        "def run(Z, y):\n"
        "    loss = lambda theta: jnp.mean((Z @ theta[0] + theta[1] - y) ** 2)\n"
        "    def step(_, state):\n"
        "        theta, inner = state\n"
        "        change, inner = optimiser.update(jax.grad(loss)(theta), inner)\n"
        "        return optax.apply_updates(theta, change), inner\n"
        "    theta = (jnp.zeros(Z.shape[1]), jnp.zeros(()))\n"
        "    return jax.lax.fori_loop(0, 200, step, (theta, optimiser.init(theta)))[0][0]\n"
        "def fit(X, y):\n"
        "    mean, scale = X.mean(axis=0), X.std(axis=0)\n"
        "    return np.asarray(run((X - mean) / scale, y)) / scale",
    ),
    "PyTorch SGD, full batch, 200 steps": (
        "torch",
        "import torch\n"
        "def fit(X, y):\n"
        "    mean, scale = X.mean(axis=0), X.std(axis=0)\n"
        "    Z, t = torch.from_numpy((X - mean) / scale), torch.from_numpy(y)[:, None]\n"
        "    model = torch.nn.Linear(X.shape[1], 1, dtype=torch.float64)\n"
        "    optimiser, loss = torch.optim.SGD(model.parameters(), lr=0.4), torch.nn.MSELoss()\n"
        "    for _ in range(200):\n"
        "        optimiser.zero_grad()\n"
        "        loss(model(Z), t).backward()\n"
        "        optimiser.step()\n"
        "    return model.weight.detach().numpy()[0] / scale",
    ),
}


def draw(table: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    """Plot times as bars, with quartiles, and the error in words beside them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
    seconds = [row["seconds"] for row in table]
    middle = np.array([one["median"] for one in seconds])
    spread = [middle - [one["low"] for one in seconds], [one["high"] for one in seconds] - middle]
    colours = ["#0072B2" if row["fit"].startswith("fssgd") else "#999999" for row in table]
    ax.barh([row["fit"] for row in table], middle, xerr=spread, color=colours)
    for index, row in enumerate(table):
        ax.text(seconds[index]["high"] * 1.1, index, f"error {row['error']:.0e}", va="center", fontsize=8)
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="time of a fit (s)", xlim=(middle.min() / 2, middle.max() * 8))
    ax.set_title(f"{arguments.rows:,} rows, {arguments.features} features")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / "against_others.png", dpi=150)


def main() -> None:
    """Measure in rounds and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    packages = []
    for package in dict.fromkeys(package for package, _ in FITS.values()):
        try:
            machine(package)
            packages.append(package)
        except PackageNotFoundError:
            print(f"{package} is not installed: left out")
    code = DATA.format(rows=arguments.rows, features=arguments.features)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name, (package, _) in FITS.items() if package in packages}
    for turn in range(arguments.rounds):
        for name, results in runs.items():
            print(f"round {turn + 1}: {name}", end="", flush=True)
            results.append(in_process(code + FITS[name][1] + MEASURE))
            print(f": {results[-1]['seconds']:.3f} s", flush=True)
    table = [
        {"fit": name}
        | {"seconds": spread([one["seconds"] for one in results])}
        | {key: max(one[key] for one in results) for key in ("megabytes", "error")}
        for name, results in runs.items()
    ]
    table.sort(key=lambda row: row["seconds"]["median"])
    about = {"machine": machine("numpy", *packages), "rows": arguments.rows, "features": arguments.features}
    save("against_others", about | {"data_megabytes": arguments.rows * arguments.features * 8 / 2**20, "table": table})
    draw(table, arguments)
    text = (
        f"{arguments.rows:,} rows of {arguments.features} features, float64. {about['machine']}; times are medians of"
    )
    (RESULTS / "machine.rst").write_text(f"{text} {arguments.rounds}.\n", encoding="utf-8")
    first = next(row for row in table if row["fit"] == "fssgd LinearRegressorGD()")["seconds"]["median"]
    with open(RESULTS / "against_others.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["", "seconds", "times the default fit", "MB beside the data", "error"])
        for row in table:
            seconds = row["seconds"]["median"]
            cells = f"{seconds:.3g}", f"{seconds / first:.2g}", f"{row['megabytes']:.0f}", f"{row['error']:.0e}"
            writer.writerow([row["fit"], *cells])
            print(f"{row['fit']:45}" + "".join(f"{cell:>12}" for cell in cells))


if __name__ == "__main__":
    main()
