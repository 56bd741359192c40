"""The memory that is available: the least of what system, control groups and limits leave."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from powersketch.exceptions import InputError
from powersketch.execution import available_memory, check_fits_memory

MIB = 2**20


def tree(root: Path, files: dict[str, str]) -> Path:
    """Write files of a machine with 8 GiB free, and others."""
    machine = {"proc/meminfo": f"MemTotal: 99 kB\nMemAvailable:  {8 * 2**20} kB\n"}
    for name, text in (machine | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_without_limits_it_is_what_the_system_has(tmp_path: Path) -> None:
    assert available_memory(tree(tmp_path, {})) == 8192 * MIB


def test_a_group_leaves_its_limit_minus_what_is_used(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": f"{512 * MIB}\n",
        "sys/fs/cgroup/memory.current": f"{200 * MIB}\n",
    }
    assert available_memory(tree(tmp_path, files)) == 312 * MIB


def test_the_cache_of_files_can_be_given_back(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": f"{512 * MIB}\n",
        "sys/fs/cgroup/memory.current": f"{500 * MIB}\n",
        "sys/fs/cgroup/memory.stat": f"anon 5\nfile {400 * MIB}\ninactive_file {300 * MIB}\n",
    }
    assert available_memory(tree(tmp_path, files)) == 312 * MIB


def test_a_parent_may_be_narrower_than_the_group_itself(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/user/service\n",
        "sys/fs/cgroup/user/service/memory.max": "max\n",
        "sys/fs/cgroup/user/service/memory.current": f"{90 * MIB}\n",
        "sys/fs/cgroup/user/memory.max": f"{300 * MIB}\n",
        "sys/fs/cgroup/user/memory.current": f"{100 * MIB}\n",
    }
    assert available_memory(tree(tmp_path, files)) == 200 * MIB


@pytest.mark.parametrize("inside", ["/docker/abc", "/"])
def test_groups_of_the_first_version(tmp_path: Path, inside: str) -> None:
    # Inside a container the path is often that of the host, and the files are at the root.
    files = {
        "proc/self/cgroup": f"12:cpu,cpuacct:/other\n4:memory:{inside}\n0::/systemd\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{256 * MIB}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{60 * MIB}\n",
        "sys/fs/cgroup/memory/memory.stat": f"total_inactive_file {4 * MIB}\n",
    }
    assert available_memory(tree(tmp_path, files)) == 200 * MIB


def test_no_limit_of_the_first_version_is_a_huge_number(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{60 * MIB}\n",
    }
    assert available_memory(tree(tmp_path, files)) == 8192 * MIB


def test_a_group_beyond_its_limit_leaves_nothing(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": f"{100 * MIB}\n",
        "sys/fs/cgroup/memory.current": f"{101 * MIB}\n",
    }
    assert available_memory(tree(tmp_path, files)) == 0


def test_the_address_space_may_be_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000 * MIB, resource.RLIM_INFINITY))
    pages = 400 * MIB // resource.getpagesize()
    files = {"proc/self/statm": f"{pages} 7 7 7 0 7 0\n"}
    assert available_memory(tree(tmp_path, files)) == 600 * MIB


def test_a_real_limit_of_the_address_space_is_seen() -> None:
    code = (
        "import resource\n"
        "from powersketch.execution import available_memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY))\n"
        "assert available_memory() < 6 << 30, available_memory()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, resource.RLIM_INFINITY))\n"
        "assert available_memory() < 3 << 30, available_memory()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_systems_without_any_of_these_files(tmp_path: Path) -> None:
    assert available_memory(tmp_path) >= available_memory() > MIB


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersketch.execution.available_memory", lambda: 3 * 2**30)
    check_fits_memory("a matrix", 3 * 2**30, "take fewer rows")
    refused = r"a matrix takes at least 4\.0 GiB .* 3\.0 GiB are available: take fewer rows\."
    with pytest.raises(InputError, match=refused):
        check_fits_memory("a matrix", 4 * 2**30, "take fewer rows")
