"""A description of the machine that a measurement was taken on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "scikit-learn", "tensorflow")


def describe_machine() -> dict[str, Any]:
    """Return processor, cores and versions, as far as they can be found out without importing anything."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "gpus": _gpus(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def machine_line(machine: dict[str, Any]) -> str:
    """Return the same in one line."""
    versions = [f"{name} {machine[name]}" for name in ("python", *PACKAGES) if machine[name]]
    hardware = [f"{machine['processor']}, {machine['cores']} cores", *machine["gpus"], machine["system"]]
    if machine["load_average"] is not None:
        hardware.append(f"load average {machine['load_average']}")
    return "; ".join([*hardware, ", ".join(versions)])


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpus() -> list[str]:
    """GPUs that TensorFlow sees, if it has been loaded."""
    tf = sys.modules.get("tensorflow")
    if tf is None:
        return []
    details = tf.config.experimental.get_device_details
    return [str(details(gpu).get("device_name", gpu.name)) for gpu in tf.config.list_physical_devices("GPU")]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
