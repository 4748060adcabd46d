"""One map, two executors, and workers that die."""

import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import pytest

from spacy_luke.errors import ConfigError, WorkerError
from spacy_luke.pretraining.engine import Engine, _client
from tests.pretraining import jobs

LOCAL = Engine("local", workers=2)
DASK = Engine("dask", workers=2)
ENGINES = pytest.mark.parametrize(
    "engine", [Engine(workers=1), LOCAL, DASK], ids=["one process", "local", "dask"]
)


def needs(engine: Engine) -> None:
    if engine.name == "dask":
        pytest.importorskip("distributed", reason="the Dask engine needs dask and distributed")


@ENGINES
def test_every_item_gets_its_result(engine):
    check_every_item(engine)


@pytest.mark.spawned
def test_every_item_gets_its_result_from_new_processes():
    check_every_item(LOCAL)


def check_every_item(engine):
    needs(engine)
    assert dict(engine.map(jobs.double, range(20))) == {i: 2 * i for i in range(20)}
    assert list(engine.map(jobs.double, [])) == []


def test_results_come_in_order_of_completion(tmp_path):
    mark, found = tmp_path / "mark", []
    for i, _ in LOCAL.map(jobs.first_after_another, [(i, mark) for i in range(4)]):
        found.append(i)
        mark.touch()
    assert sorted(found) == [0, 1, 2, 3] and found[0] != 0


@pytest.mark.parametrize("engine", [LOCAL, DASK], ids=["local", "dask"])
def test_partitions_of_a_killed_worker_are_computed_again(engine, tmp_path):
    needs(engine)
    items = [(i, tmp_path) for i in range(8)]
    assert dict(engine.map(jobs.die_once, items)) == {i: i for i in range(8)}
    assert (tmp_path / "died-2").exists()


@pytest.mark.parametrize("engine", [LOCAL, DASK], ids=["local", "dask"])
def test_a_partition_that_kills_its_workers_is_named(engine):
    needs(engine)
    with pytest.raises(
        WorkerError, match="Workers died 3 times while processing part-7: it needs more"
    ):
        list(engine.map(jobs.always_die, [7], ["part-7"]))


def test_no_partition_is_lost_where_a_pool_breaks_between_two_of_them(monkeypatch):
    submit, calls = ProcessPoolExecutor.submit, []

    def broken_once(pool, *args):
        calls.append(args)
        if len(calls) == 5:  # two for nothing, two partitions
            raise BrokenProcessPool
        return submit(pool, *args)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", broken_once)
    assert dict(LOCAL.map(jobs.double, range(6))) == {i: 2 * i for i in range(6)}
    assert len(calls) > 6


def test_all_that_were_under_way_are_suspects(tmp_path):
    """A pool of processes does not say which of them died by itself."""
    names = ["a", "deadly", "b"]
    items = [(name, 2, tmp_path) for name in names]
    with pytest.raises(
        WorkerError, match="died 3 times while processing a, deadly, b: one of them"
    ):
        list(Engine(workers=3).map(jobs.die_beside, items, names))


def test_a_dask_cluster_ends_with_its_map():
    needs(DASK)
    import psutil

    before = set(psutil.Process().children(recursive=True))
    assert dict(DASK.map(jobs.double, range(4))) == {i: 2 * i for i in range(4)}
    left = set(psutil.Process().children(recursive=True)) - before
    names = [" ".join(x.cmdline()) for x in left if x.status() != psutil.STATUS_ZOMBIE]
    assert not [x for x in names if "resource_tracker" not in x]


def test_a_dask_cluster_leaves_the_configuration_of_the_process_as_it_is():
    needs(DASK)
    import dask

    key = "distributed.scheduler.allowed-failures"
    with dask.config.set({key: 7}):
        assert dict(DASK.map(jobs.double, range(2))) == {0: 0, 1: 2}
        assert dask.config.get(key) == 7


SCRIPT = """
from spacy_luke.pretraining.engine import Engine, _client
from tests.pretraining import jobs

if __name__ == "__main__":
    list(Engine("{name}", 2).map(jobs.tell_and_sleep, ["{folder}"] * 4))
"""


@pytest.mark.parametrize("name", ["local", "dask"])
def test_workers_end_with_a_run_that_is_killed(name, tmp_path):
    """Else they would write beside those of the next."""
    needs(Engine(name))
    import psutil

    (tmp_path / "run.py").write_text(SCRIPT.format(name=name, folder=tmp_path), encoding="utf8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, tmp_path / "run.py"], env=environment)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("worker-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = [psutil.Process(int(x.name[7:])) for x in tmp_path.glob("worker-*")]
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert len(workers) == 2 and not alive


def test_a_scheduler_that_runs_is_used():
    needs(DASK)
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        engine = Engine("dask", scheduler=cluster.scheduler_address)
        worker = cluster.workers[0].pid
        assert dict(engine.map(jobs.own_pid, range(4))) == dict.fromkeys(range(4), worker)
        assert cluster.workers[0].pid == worker  # it is not ours to end


@ENGINES
def test_an_error_of_the_function_ends_the_map(engine):
    needs(engine)
    with pytest.raises(ValueError, match="item 3 is refused"):
        list(engine.map(jobs.refuse, range(6)))


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigError, match="--engine is 'spark'"):
        Engine("spark")
    with pytest.raises(ConfigError, match="--workers is -1"):
        Engine(workers=-1)
    with pytest.raises(ConfigError, match="needs --engine dask"):
        Engine("local", scheduler="tcp://127.0.0.1:8786")


def test_a_cluster_that_fails_to_close_does_not_hide_why_its_workers_died():
    @contextmanager
    def cluster(**_):
        try:
            yield "cluster"
        finally:
            raise AssertionError("can only join a started process")

    @contextmanager
    def client(_):
        yield "client"

    cause = KeyError("why")
    with (
        pytest.raises(WorkerError, match="part-7") as caught,
        _client(client, cluster, DASK) as connected,
    ):
        assert connected == "client"
        raise WorkerError("part-7") from cause
    assert caught.value.__cause__ is cause
    with pytest.raises(AssertionError, match="started process"), _client(client, cluster, DASK):
        pass
