"""How a command ends when it is told to: one line, exit code 128 + the signal's number, and nothing half done."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fssgd import LinearRegressorGD

pa = pytest.importorskip("pyarrow")
pytest.importorskip("typer.testing")
if os.name != "posix":
    pytest.skip("signals as POSIX has them", allow_module_level=True)

from test_cli import COMMAND, command  # noqa: E402

from fssgd.tables._checkpoint import Checkpoint  # noqa: E402

pytestmark = pytest.mark.slow
SIGNALS = {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Terminated.", signal.SIGHUP: "Hung up."}
ENDS = [(number, 128 + number, text) for number, text in SIGNALS.items()]


@pytest.fixture(autouse=True)
def heeded():
    """Whoever runs the tests may have a signal ignored, as nohup does, and the command would leave it at that."""
    usual = {number: signal.SIG_DFL for number in SIGNALS} | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


# as `python -m fssgd` and as the script that pip installs, with a signal while a module is being imported
IMPORTING = """
import os, runpy, sys

class Signalling:
    def find_spec(name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), int(sys.argv[2]))

sys.meta_path.insert(0, Signalling)
if sys.argv[3] == "script":
    from fssgd.cli import main
    sys.exit(main())
runpy.run_module("fssgd", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("module", "number", "start"),
    [
        ("numpy", signal.SIGINT, "script"),
        ("sklearn.base", signal.SIGINT, "-m"),
        ("sklearn.base", signal.SIGTERM, "script"),
        ("typer", signal.SIGHUP, "-m"),
        ("fssgd.cli._predict", signal.SIGINT, "script"),
    ],
)
def test_while_importing(module, number, start):
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, module, str(int(number)), start], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", f"{SIGNALS[number]}\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("x,y\n" + "1,3\n2,5\n4,9\n" * 100_000)
    model = LinearRegressorGD().fit([[1.0], [2.0], [4.0]], [3.0, 5.0, 9.0])
    model.feature_names_in_ = np.array(["x"], dtype=object)
    model.save("model.json")
    return tmp_path


@pytest.mark.parametrize(("number", "code", "text"), ENDS)
def test_while_reading_it_says_where_it_goes_on(folder, number, code, text, monkeypatch):
    arguments = ("fit", "rows.csv", "-t", "y", "--json", "--checkpoint", "state.npz", "--checkpoint-every", "0")
    whole = command(*arguments[:5]).stdout
    save = Checkpoint.save

    def signalling(self, *state, **more):
        save(self, *state, **more)
        os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", signalling)
        done = command(*arguments, code=code)
    assert (done.stdout, done.stderr) == ("", f"{text} The same command continues from state.npz.\n")
    assert sorted(os.listdir()) == ["model.json", "rows.csv", "state.npz"]
    with np.load("state.npz") as state:
        assert 0 < state["state.rows"] < 300_000
    assert command(*arguments).stdout == whole
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # for whoever called it


@pytest.mark.parametrize(("number", "code", "text"), ENDS)
@pytest.mark.parametrize("times", [1, 2])
def test_while_writing_it_leaves_what_was_there(folder, number, code, text, times, monkeypatch):
    """Twice: a terminal that closes and the shell in it both send SIGHUP."""
    if (number, times) == (signal.SIGINT, 2):
        pytest.skip("a second Ctrl-C ends the process at once, and this one runs the tests")
    Path("p.csv").write_text("before")
    predict, unlink = LinearRegressorGD.predict, os.unlink

    def signalling(self, X):
        os.kill(os.getpid(), number)
        return predict(self, X)

    def again(path):
        if times == 2:
            os.kill(os.getpid(), number)
        unlink(path)

    monkeypatch.setattr(LinearRegressorGD, "predict", signalling)
    monkeypatch.setattr(os, "unlink", again)
    done = command("predict", "model.json", "rows.csv", "--out", "p.csv", code=code)
    assert (done.stdout, done.stderr) == ("", f"{text}\n")
    assert Path("p.csv").read_text() == "before"
    assert sorted(os.listdir()) == ["model.json", "p.csv", "rows.csv"]


@pytest.mark.parametrize(("number", "code", "text"), [ENDS[0], ENDS[1]])
def test_while_it_waits_for_rows_that_do_not_come(folder, number, code, text):
    """In a library, where Python takes no signals; with a file half written."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*COMMAND, "predict", "model.json", "-", "--out", "p.csv"], **pipes) as started:
        started.stdin.write(b"x\n" + b"1\n2\n" * 1_000_000)  # more than a pipe holds: it reads
        started.stdin.flush()
        started.send_signal(number)
        assert started.wait(60) == code
        assert (started.stdout.read(), started.stderr.read()) == (b"", f"{text}\n".encode())
    assert sorted(os.listdir()) == ["model.json", "rows.csv"]


def test_a_command_that_is_to_outlive_the_terminal(folder, monkeypatch):
    """As under nohup, which has SIGHUP ignored."""
    save = Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", lambda *a, **k: (save(*a, **k), os.kill(os.getpid(), signal.SIGHUP)))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command("fit", "rows.csv", "-t", "y", "--checkpoint", "state.npz")
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_twice_ctrl_c(folder):
    """The second ends it at once, whatever the first is being answered with."""
    code = (
        "import os, signal, sys\nfrom fssgd import LinearRegressorGD\nfrom fssgd.cli import main\n"
        "def stuck(self, X):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n    finally:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n        print('went on')\n"
        "LinearRegressorGD.predict = stuck\nmain()"
    )
    arguments = ["predict", "model.json", "rows.csv", "--out", "p.csv"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")
    assert sorted(os.listdir()) == ["model.json", "rows.csv"]
