"""Settings for all tests: property tests run the same examples every time, without a time limit."""

import signal

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """Hear Ctrl-C even if started in the background, where shells have it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
