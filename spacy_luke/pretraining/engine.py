"""A parallel ``map`` over partitions, in local processes or on Dask workers.

If a worker dies (out of memory, a lost machine), its partitions are run again, a limited number of
times. An exception raised by the function ends the map.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from ..errors import ConfigError, WorkerError

T = TypeVar("T")
R = TypeVar("R")

ENGINES = ("local", "dask")
ATTEMPTS = 3
"""How often a partition may be started. If workers died every time, it is an error."""
START_METHOD = "spawn"
"""How workers start. A forked process could inherit held locks; one of a fork server would have an
older environment, and perhaps other modules, because it is started without this ``sys.path``."""


@dataclass(frozen=True)
class Engine:
    """Where partitions are computed.

    name: ``local`` (processes of this machine) or ``dask``. workers: processes; 0: one per core.
    scheduler: address of a Dask scheduler; without it, Dask starts a cluster on this machine.
    """

    name: str = "local"
    workers: int = 0
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ConfigError(f"--engine is {self.name!r}; use one of {', '.join(ENGINES)}.")
        if self.workers < 0:
            raise ConfigError(f"--workers is {self.workers}; use 0 (one per core) or more.")
        if self.scheduler and self.name != "dask":
            raise ConfigError(f"--scheduler {self.scheduler} needs --engine dask.")

    @property
    def n_workers(self) -> int:
        if self.workers:
            return self.workers
        if hasattr(os, "sched_getaffinity"):  # not available on all systems
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def map(
        self, function: Callable[[T], R], items: Sequence[T], names: Sequence[str] = ()
    ) -> Iterator[tuple[int, R]]:
        """Yield (index, result) of each item in order of completion.

        function, items: must be picklable. names: of the items, for messages. Raises the exceptions
        of ``function``, and WorkerError if workers die.
        """
        names = names or [str(item) for item in items]
        if not items:
            return
        if self.name == "dask":
            yield from _dask(function, items, names, self)
        elif self.n_workers == 1:
            yield from ((i, function(item)) for i, item in enumerate(items))
        else:
            yield from _processes(function, items, names, self.n_workers)


def _processes(
    function: Callable[[T], R], items: Sequence[T], names: Sequence[str], n_workers: int
) -> Iterator[tuple[int, R]]:
    waiting = list(range(len(items)))[::-1]
    starts = [0] * len(items)
    while waiting:
        context = multiprocessing.get_context(START_METHOD)
        n_processes = min(n_workers, len(waiting))
        with ProcessPoolExecutor(
            n_processes, mp_context=context, initializer=_end_with_parent
        ) as pool:
            running: dict[Future, int] = {}
            try:
                # The pool starts its processes one by one on calls, and notices the death only of
                # those that existed at the last call. Empty calls make it start all of them.
                for _ in range(n_processes):
                    pool.submit(int)
                while waiting or running:
                    while waiting and len(running) < 2 * n_workers:
                        i = waiting[-1]  # popped later, because submit raises if the pool is broken
                        running[pool.submit(function, items[i])] = i
                        starts[i] += 1
                        waiting.pop()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        result = future.result()
                        yield running.pop(future), result
            except BrokenProcessPool as error:
                # The pool does not tell which worker died: run all unfinished partitions again.
                lost = []
                for future, i in running.items():
                    if future.done() and future.exception() is None:
                        yield i, future.result()
                    else:
                        lost.append(i)
                suspects = [names[i] for i in lost if starts[i] >= ATTEMPTS]
                if suspects:
                    raise WorkerError(_died(suspects)) from error
                waiting.extend(lost)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _end_with_parent() -> None:
    """End a worker when its parent process is killed. Otherwise it would finish its work, in
    parallel with the workers of the next run, and then wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait_for_end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_for_end, daemon=True).start()


def _dask(
    function: Callable[[T], R], items: Sequence[T], names: Sequence[str], engine: Engine
) -> Iterator[tuple[int, R]]:
    try:
        from distributed import Client, LocalCluster, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise ConfigError(
            "--engine dask needs dask and distributed: pip install 'spacy-luke[dask]'."
        ) from error
    with _client(Client, LocalCluster, engine) as client:
        waiting = iter(range(len(items)))
        indices: dict[Any, int] = {}

        def submit() -> Iterator[Any]:
            """Submit up to two items per current thread. The number of workers may change."""
            room = max(1, 2 * sum(client.nthreads().values()) - len(indices))
            for i in islice(waiting, room):
                future = client.submit(function, items[i], pure=False)
                indices[future] = i
                yield future

        completed = as_completed(list(submit()))
        for future in completed:
            i = indices.pop(future)
            try:
                result = future.result()
            except KilledWorker as error:
                raise WorkerError(_died([names[i]])) from error
            yield i, result
            for more in submit():
                completed.add(more)


@contextmanager
def _client(client: Any, cluster: Any, engine: Engine) -> Iterator[Any]:
    """A client of the scheduler, or of a temporary local cluster."""
    if engine.scheduler:
        with client(engine.scheduler) as connected:
            yield connected
        return
    local = cluster(
        n_workers=engine.n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # any free port
        scheduler_kwargs={"allowed_failures": ATTEMPTS},
    )
    failed: BaseException | None = None
    try:
        with local, client(local) as connected:
            try:
                yield connected
            except BaseException as error:
                failed = error
                raise
    except Exception:
        # A cluster whose workers died may fail to close; why they died is what has to be said.
        if failed is not None:
            raise failed from failed.__cause__
        raise


def _died(names: Sequence[str]) -> str:
    one_of = "one of them" if len(names) > 1 else "it"
    return (
        f"Workers died {ATTEMPTS} times while processing {', '.join(names)}: {one_of} needs more "
        "memory than is available, or the workers were killed. Use fewer --workers or smaller "
        "partitions, and start again: finished partitions are kept."
    )
