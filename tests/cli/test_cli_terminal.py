"""The command in a terminal: it says on standard error what it is at, and nowhere else."""

import os
import subprocess
import sys
import threading

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pty = pytest.importorskip("pty")

from fssgd.cli import _console  # noqa: E402

pytestmark = pytest.mark.slow
ROWS = "".join(f"{i},{i * i % 7},{2 * i + i * i % 7}\n" for i in range(50))


def in_terminal(*arguments, code="from fssgd.cli import main; main()"):
    """Run the command with a pseudo-terminal for standard error; return its code and both outputs."""
    ours, theirs = pty.openpty()
    chunks = []

    def listen():
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other end is closed
                return
            if not chunk:
                return
            chunks.append(chunk)

    listener = threading.Thread(target=listen)
    listener.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment, check=False
    )
    os.close(theirs)
    listener.join()
    os.close(ours)
    return done.returncode, done.stdout.decode(), b"".join(chunks).decode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homes.csv").write_text("a,b,y\n" + ROWS)


SLOW = "from fssgd.cli import _console, main; _console.SPEED = 1e-9; main()"


def test_a_spinner_names_every_long_step(folder):
    for arguments, told in (
        (
            ("fit", "homes.csv", "-t", "y", "--save", "model.json"),
            ["Decomposing the second moments of 2", "Fitting 2 f"],
        ),
        (("fit", "homes.csv", "-t", "y", "--backend", "numpy"), ["Descending over 50 rows, backend numpy ..."]),
        (
            ("diagnose", "homes.csv", "-t", "y"),
            ["Decomposing the second moments of 2 features", "Diagnosing 2 features"],
        ),
        (("predict", "model.json", "homes.csv"), ["Predicting, 50 rows so far ..."]),
    ):
        code, out, err = in_terminal(*arguments, code=SLOW)
        assert code == 0, err
        for text in told:
            assert text in err
        assert " ..." not in out


def test_errors_and_warnings_are_readable_beside_it(folder):
    code, out, err = in_terminal("fit", "homes.csv", "-t", "y", "--learning-rate", "100", "--no-standardize")
    assert (code, out) == (1, "")
    assert "Error: Gradient descent diverged" in err
    assert "Decomposing" not in err


def test_no_spinner_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_console, "SPEED", 1e-9)
    _console.announce_decomposition(10)
    with _console.working("Fitting") as say:
        say("still fitting")
    assert capsys.readouterr() == ("", "")
