"""Threads share a pipeline: predictions run side by side, and training waits for them."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from thinc.api import SGD, fix_random_seed

from spacy_luke.forked_locks import ForkedLock
from spacy_luke.layers import encoder_run
from spacy_luke.layers.forking import make_forks_safe
from spacy_luke.layers.read_write_lock import ReadWriteLock
from tests.pipeline.relation_data import make_examples, make_pipeline
from tests.pipeline.test_joint import answers, initialized


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run(work, n_threads: int) -> list:
    with ThreadPoolExecutor(n_threads) as pool:
        return [f.result(timeout=120) for f in [pool.submit(work, i) for i in range(n_threads)]]


def test_predictions_of_several_threads_are_right(bert_dir):
    nlp, _ = initialized(bert_dir)
    expected = answers(nlp)
    found = run(lambda i: [answers(nlp) for _ in range(15)], 4)
    assert all(answer == expected for part in found for answer in part)


@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_one_thread_trains_while_others_predict(bert_dir, rate):
    """With a rate of 0 nothing changes, so what others predict in between must not, either: dropout
    is of the training alone."""
    nlp, examples = initialized(bert_dir)
    expected = answers(nlp)
    done = threading.Event()

    def work(i: int) -> list:
        if i:
            found = []
            while not done.is_set():
                found.append(answers(nlp))
            return found
        try:
            for _ in range(25):
                nlp.update(make_examples(nlp), sgd=SGD(rate, L2=0.0, use_averages=False), drop=0.5)
        finally:
            done.set()
        return []

    found = [answer for part in run(work, 4) for answer in part]
    assert len(found) > 3
    if rate == 0.0:
        assert all(answer == expected for answer in found) and answers(nlp) == expected
    else:
        assert answers(nlp) != expected


def test_a_prediction_between_the_passes_of_an_update_changes_nothing(bert_dir, monkeypatch):
    """Parts of a large batch are computed again in the backward pass, with the same dropout."""
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 100)
    weights = []
    for is_used in (False, True):
        nlp = make_pipeline("luke_relation", bert_dir, "markers")
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        pipe = nlp.get_pipe("luke_relation")
        loss = pipe._loss

        def predict_first(*args, nlp=nlp, loss=loss, is_used=is_used):
            if is_used:
                nlp(make_examples(nlp)[0].predicted)
            return loss(*args)

        monkeypatch.setattr(pipe, "_loss", predict_first)
        fix_random_seed(1)
        nlp.update(examples, sgd=SGD(0.1, L2=0.0, use_averages=False), drop=0.5)
        weights.append(nlp.to_bytes(exclude=["meta", "vocab"]))
    assert weights[0] == weights[1]


def test_readers_share_the_lock_and_a_writer_has_it_alone():
    lock, inside, most, broken = ReadWriteLock(), [], [], []

    def work(i: int) -> None:
        for j in range(60):
            if (i + j) % 5 == 0:
                with lock.writing(), lock.reading(), lock.writing():
                    broken.extend(inside)
                    time.sleep(0.0005)
                    broken.extend(inside)
            else:
                with lock.reading(), lock.reading():
                    inside.append(i)
                    most.append(len(inside))
                    time.sleep(0.0005)
                    inside.remove(i)

    run(work, 6)
    assert not broken and max(most) > 1 and not inside


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.parametrize("kind", [ReadWriteLock, ForkedLock])
def test_a_lock_that_another_thread_holds_is_free_in_a_forked_process(kind):
    make_forks_safe()
    lock, held, done = kind(), threading.Event(), threading.Event()

    def hold():
        with lock.writing() if kind is ReadWriteLock else lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends it if it waits
        with lock.reading() if kind is ReadWriteLock else lock:
            os._exit(0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with lock.reading() if kind is ReadWriteLock else lock:
        pass  # and in the parent as before


def test_a_lock_is_free_after_an_error():
    lock = ReadWriteLock()
    for take in (lock.reading, lock.writing):
        with pytest.raises(KeyError), take():
            raise KeyError

    def work(i: int) -> bool:
        with lock.writing():
            return True

    assert run(work, 2) == [True, True]
