"""Settings for all tests: property tests run the same examples every time, without a time limit."""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("repeatable")
