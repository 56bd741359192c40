"""The code itself: import time, and how often a call changes files."""
