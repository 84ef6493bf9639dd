"""What a fit holds in memory beside its data, under a limit that the system enforces."""

import subprocess
import sys

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts anonymous memory on Linux only"),
]

LIMITED = """
import resource
import numpy as np
from fssgd import LinearRegressorGD, Moments

def limit(megabytes):
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + megabytes * 2**20,) * 2)

LinearRegressorGD().fit(np.random.default_rng(0).normal(size=(20_000, 25)), np.arange(20_000.0))
X = np.memmap({path!r}, mode="r", dtype={dtype!r}, shape=(200_000, 50), order={order!r})
y = np.arange(200_000.0)
limit({megabytes})
X = {X}
model = LinearRegressorGD().fit(X, y)
batches = LinearRegressorGD()
for start in range(0, len(X), 50_000):
    batches.partial_fit(X[start : start + 50_000], y[start : start + 50_000])
np.testing.assert_allclose(batches.coef_, model.coef_, rtol={rtol})
print(model.n_iter_)
"""


def run(tmp_path, megabytes, dtype="float64", order="C", given="X"):
    path = tmp_path / "X.bin"
    X = np.random.default_rng(1).normal(size=(200_000, 50)).astype(dtype)
    path.write_bytes(X.tobytes(order=order))
    code = LIMITED.format(
        X=given,
        path=str(path),
        dtype=dtype,
        order=order,
        megabytes=megabytes,
        rtol=1e-4 if dtype == "float32" else 1e-9,
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_a_memory_map_is_fitted_in_less_memory_than_it_has(tmp_path, dtype, order):
    """Blocks of the map are read in turn; nothing of its size is allocated."""
    done = run(tmp_path, 24, dtype, order)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 0


def test_the_memory_limit_is_enforced(tmp_path):
    assert "MemoryError" in run(tmp_path, 24, given="np.array(X)").stderr
