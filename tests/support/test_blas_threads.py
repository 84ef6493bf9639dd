"""BLAS has the threads it had before, whoever limited it, in whatever order."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from fssgd._moments.table_spec import TableSpec
from fssgd._rows.dask_graph import one_thread_each
from fssgd._support import blas_threads
from fssgd._support.blas_threads import one_thread
from fssgd.tables._row_pass import TablePass


def threads():
    return {one.filepath: one.num_threads for one in ThreadpoolController().select(user_api="blas").lib_controllers}


@pytest.fixture
def workers():
    """Three threads that live on."""
    with ExitStack() as stack:
        yield [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]


@pytest.fixture
def two():
    """Several threads for BLAS also where there is one core, set by a thread that does not live on."""
    with ThreadPoolExecutor(1) as setter:
        limits = setter.submit(threadpool_limits, 2, user_api="blas").result()
    yield threads()
    with ThreadPoolExecutor(1) as setter:
        setter.submit(limits.restore_original_limits).result()


LIMITS = {
    "plain": one_thread,
    "a pass": lambda: TablePass(TableSpec("y", ("a",)), "the table", progress=False),
    "partitions": lambda: one_thread_each(2),
}


# a digit is a thread, which enters the first time and leaves the second
@pytest.mark.parametrize("order", ["00", "0101", "0110", "012012", "012210", "01021020", "0000", "011022"])
@pytest.mark.parametrize("kind", LIMITS)
def test_limits_that_overlap_leave_blas_the_threads_it_had(workers, two, order, kind):
    inside = {}
    for who in order + "22":  # and one more, from a thread that others may have come before
        if who in inside:
            workers[int(who)].submit(inside.pop(who).__exit__, None, None, None).result()
        else:
            inside[who] = LIMITS[kind]()
            workers[int(who)].submit(inside[who].__enter__).result()
        assert threads() == (dict.fromkeys(two, 1) if inside else two)


def test_limits_within_limits_of_one_thread(two):
    with one_thread():
        with one_thread():
            pass
        assert set(threads().values()) <= {1}
    assert threads() == two


@pytest.mark.parametrize("mine", [1, 3])
def test_within_limits_of_ones_own(two, mine):
    with threadpool_limits(mine, user_api="blas"):
        before = threads()
        with one_thread():
            assert set(threads().values()) <= {1}
        assert threads() == before
    assert threads() == two


def test_limits_of_another_thread_that_end_first(workers, two):
    with ExitStack() as theirs:
        workers[0].submit(lambda: theirs.enter_context(threadpool_limits(3, user_api="blas"))).result()
        ours = one_thread()
        workers[1].submit(ours.__enter__).result()
        workers[0].submit(theirs.close).result()
        workers[1].submit(ours.__exit__, None, None, None).result()
    assert threads() == two


def test_a_number_set_on_the_way_stays(two):
    with one_thread():
        with ThreadPoolExecutor(1) as setter:
            setter.submit(threadpool_limits, 3, user_api="blas").result()
        three = threads()
    assert threads() == three


def test_an_error_ends_the_limit(two):
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert threads() == two


def test_a_number_of_each_thread_is_set_back_in_that_thread(workers, monkeypatch):
    """As MKL has it, and OpenBLAS on OpenMP; the library here is OpenMP itself."""
    openmp = ThreadpoolController().select(user_api="openmp").lib_controllers[:1]
    monkeypatch.setattr(blas_threads, "_libraries", lambda: openmp)

    def number():
        return openmp[0].num_threads

    def seen():
        return [worker.submit(number).result() for worker in workers]

    for i, worker in enumerate(workers):
        worker.submit(openmp[0].set_num_threads, 2 + i).result()
    first, second = one_thread(), one_thread()
    workers[0].submit(first.__enter__).result()
    workers[1].submit(second.__enter__).result()
    assert seen() == [1, 1, 4]
    workers[0].submit(first.__exit__, None, None, None).result()
    assert seen() == [2, 1, 4]
    workers[1].submit(second.__exit__, None, None, None).result()
    assert seen() == [2, 3, 4]


FORK = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from threadpoolctl import ThreadpoolController, threadpool_limits
from fssgd._support.blas_threads import one_thread

def threads():
    return [one.num_threads for one in ThreadpoolController().select(user_api="blas").lib_controllers]

def run(function, *arguments):
    return other.submit(function, *arguments).result() if sys.argv[1] == "another" else function(*arguments)

with ThreadPoolExecutor(1) as setter:
    setter.submit(threadpool_limits, 2, user_api="blas").result()
before, limit = threads(), one_thread()
with ThreadPoolExecutor(1) as other:
    run(limit.__enter__)
    child = os.fork()
    if not child:
        if sys.argv[1] == "the one that forks":
            limit.__exit__(None, None, None)
        assert threads() == before, threads()
        with one_thread():
            assert threads() == [1] * len(before), threads()
        assert threads() == before, threads()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert threads() == [1] * len(before), threads()
    run(limit.__exit__, None, None, None)
    assert threads() == before, threads()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("thread", ["the one that forks", "another"])
def test_a_forked_process_has_the_threads_of_before(thread):
    command = [sys.executable, "-W", "ignore", "-c", FORK, thread]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
