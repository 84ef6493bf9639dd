"""What the benchmarks share: one process a measurement, rounds taken in turn, the machine in words."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # settings that make a current NumPy slow

# resident memory before, and the peak of it during, what is measured
MEMORY = """
def _status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) / 1024

def start():
    open("/proc/self/clear_refs", "w").write("5")
    return _status("VmRSS")

def peak_since(before):
    return _status("VmHWM") - before
"""


def in_process(code: str) -> Any:
    """Run code that prints one line of JSON, in a fresh process, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name not in SLOWING}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", MEMORY + code], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def machine(*packages: str) -> str:
    """Name the processor, its cores and the versions of what was measured."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def spread(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return {"low": float(low), "median": float(middle), "high": float(high)}


def save(name: str, document: Any) -> Path:
    """Write results as JSON where the documentation reads them."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path
