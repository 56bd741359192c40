"""Settings for all tests: property tests run the same examples every time, without a time limit."""

import signal

import sklearn.ensemble  # noqa: F401 (loads the runtime of OpenMP, which is limited below)
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("repeatable")


# Threads of gradient boosting wait by spinning, at the expense of the tests beside them.
threadpool_limits(limits=1, user_api="openmp")


def pytest_configure() -> None:
    """Hear Ctrl-C even if started in the background, where shells have it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
