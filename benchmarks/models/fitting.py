"""Fits one model to the splits of problems in a fresh process and returns what came out.

What came out is kept in the user's cache, so that a run that was interrupted goes on where it
was, and other people's models are measured again only if they, or what they are given, change.
"""

import inspect
import json
import os
import queue
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn

from benchmarks.features.memory import peak_bytes
from benchmarks.models.methods import METHODS, OURS, Method
from benchmarks.models.problems import Problem, Split
from benchmarks.outcomes import kept, library_sources
from benchmarks.peers import models as peers
from benchmarks.timing import timed

Outcome = dict[str, float]
"""Score, seconds and memory of one split; coverage or calibration where the model has them."""
QUANTILE = 1.959964
"""Of the standard normal distribution, for intervals of 95 %."""
CALIBRATION_BINS = 15
PATIENCE = 0.2
"""The share of its limit that a model may take for every split, not for the first only."""

SMALL_ROWS = 10_000
"""Fits to fewer rows than these gain little by a second core."""

Task = tuple[str, str]
"""The names of a model and of the data it is fitted to."""
Outcomes = dict[Task, list[Outcome]]


def all_outcomes(tasks: Mapping[Task, Sequence[Problem]]) -> Outcomes:
    """Return the outcomes of all tasks: small ones have a core each, the others all, in turn."""
    small = {task: problems for task, problems in tasks.items() if _is_small(problems)}
    reached = dict(_on_single_cores(small))
    large = {task: problems for task, problems in tasks.items() if task not in small}
    return reached | {task: _announced(task, problems) for task, problems in large.items()}


def _is_small(problems: Sequence[Problem]) -> bool:
    return max(problem.training_shape[0] for problem in problems) < SMALL_ROWS


def _on_single_cores(tasks: Mapping[Task, Sequence[Problem]]) -> Iterator[tuple[Task, Any]]:
    cores: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in (available := os.sched_getaffinity(0)):
        cores.put(core)

    def take_core() -> None:
        os.sched_setaffinity(0, {cores.get()})  # of this thread, and of processes it starts

    with ThreadPoolExecutor(len(available), initializer=take_core) as pool:
        yield from zip(tasks, pool.map(_announced, tasks, tasks.values()), strict=True)


def _announced(task: Task, problems: Sequence[Problem]) -> list[Outcome]:
    print(f"  {' on '.join(task)} …", flush=True)
    return outcomes(task[0], problems)


def outcomes(name: str, problems: Sequence[Problem]) -> list[Outcome]:
    """Return what the model reached on the splits of problems, now or in an earlier run."""

    def reached() -> list[Outcome]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "problems"
            joblib.dump(list(problems), path)
            return _outcomes(name, path, sum(problem.splits for problem in problems))

    return kept([name, _sources(name), list(problems)], reached)


def _sources(name: str) -> list[str]:
    """Return what outcomes of a model depend on beside the problem."""
    if name != OURS:
        return [sklearn.__version__, Path(peers.__file__).read_text()]
    return library_sources()


def _outcomes(name: str, problems: Path, count: int) -> list[Outcome]:
    """Return what the model reaches on the first splits of stored problems.

    A model with a limit gets a process for every split, and no further split once it did not
    finish or took a good part of the limit.
    """
    method = METHODS[name]
    if method.seconds is None:
        return _run(name, problems, 0, count, None)
    reached: list[Outcome] = []
    for number in range(count):
        finished = _run(name, problems, number, number + 1, method.seconds)
        reached += finished
        if not finished or finished[0]["fit"] > PATIENCE * method.seconds:
            break
    return reached


def _run(name: str, problems: Path, first: int, last: int, limit: float | None) -> list[Outcome]:
    command = [sys.executable, "-m", __name__, name, str(problems), str(first), str(last)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return []
    if limit and run.returncode < 0:  # by a signal, as the system ends what takes all memory
        print(f"  {name} was ended by signal {-run.returncode}", flush=True)
        return []
    if run.returncode:
        raise RuntimeError(f"{name} failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def main(name: str, path: str, first: str, last: str) -> None:
    problems: list[Problem] = joblib.load(path)
    method = METHODS[name]
    numbered = [(problem, number) for problem in problems for number in range(problem.splits)]
    reached = [_outcome(method, *each) for each in numbered[int(first) : int(last)]]
    print(json.dumps(reached))


def _outcome(method: Method, problem: Problem, number: int) -> Outcome:
    split = problem.split(number, coded=method.coded)
    model = method.build(split)
    with warnings.catch_warnings():
        # Of ill-conditioned systems, and of a best penalty at the end of the grid.
        warnings.simplefilter("ignore")
        _, fit_seconds = timed(lambda: model.fit(split.X, split.y))
        predicted, predict_seconds = timed(lambda: model.predict(split.X_test))
        outcome = {
            "score": score(split, predicted),
            "fit": fit_seconds,
            "predict": predict_seconds,
            "peak MB": peak_bytes() / 1e6,
        }
        return outcome | _honesty(model, split)


def score(split: Split, predicted: np.ndarray) -> float:
    """Return the accuracy or R²."""
    if split.is_classification:
        return float(np.mean(predicted == split.y_test))
    return float(1 - np.mean((predicted - split.y_test) ** 2) / np.var(split.y_test))


def _honesty(model: Any, split: Split) -> Outcome:
    """Return how well the model knows its errors, if it says anything about them."""
    if split.is_classification:
        if not hasattr(model, "predict_proba"):
            return {}
        return {"calibration": calibration_error(model.predict_proba(split.X_test), split)}
    if "return_std" not in inspect.signature(model.predict).parameters:
        return {}
    return {"coverage": coverage(*model.predict(split.X_test, return_std=True), split)}


def coverage(mean: np.ndarray, deviation: np.ndarray, split: Split) -> float:
    """Return the share of targets inside the intervals that are to hold 95 % of them."""
    return float(np.mean(np.abs(split.y_test - mean) <= QUANTILE * deviation))


def calibration_error(probabilities: np.ndarray, split: Split) -> float:
    """Return the expected difference of confidence and accuracy, over bins of confidence."""
    classes = np.unique(split.y)
    right = classes[probabilities.argmax(axis=1)] == split.y_test
    confidence = probabilities.max(axis=1)
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, right - confidence, CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / len(right))


if __name__ == "__main__":
    main(*sys.argv[1:])
