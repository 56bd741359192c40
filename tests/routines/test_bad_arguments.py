"""The compiled module refuses what would make it read or write outside an array."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from powersketch import _native
from powersketch.routines import compiled
from powersketch.routines.fourier_tables import FourierTables, fourier_tables
from powersketch.routines.specs import ChainSpec, ScatterSpec, SrhtSpec, TensorSketchSpec
from tests.routines.routine_calls import Shape, chain_spec, tensor_sketch_spec

ROWS, COLUMNS, SIZE, PADDED = 3, 5, 4, 8
X = Shape(ROWS, COLUMNS, SIZE).dense()
OUT = np.zeros((ROWS, SIZE))
SIGNS = np.ones(COLUMNS)
INDICES = np.arange(SIZE, dtype=np.int32)
VALUES = np.ones(4)
CSR_COLUMNS = np.array([0, 1, 2, 4], dtype=np.int32)
INDPTR = np.array([0, 1, 3, 4])
PAIR_SIGNS = np.ones(PADDED)
TABLE = np.zeros(COLUMNS, dtype=np.int32)
DIRECTION = np.ones(COLUMNS)
MATRIX = np.ones((COLUMNS, SIZE))
BLOCKS = 2
BLOCK_INDICES = np.array([3, 0, 9, 15], dtype=np.int32)

CSR = {"values": VALUES, "columns": CSR_COLUMNS, "indptr": INDPTR}
SRHT = {"signs": SIGNS, "indices": INDICES, "padded": PADDED, "scale": 1.0, "out": OUT}
SORF = {
    "diagonals": np.ones((BLOCKS, 3, PADDED)),
    "indices": BLOCK_INDICES,
    "scales": np.ones(SIZE),
}
SCATTER = {"table": TABLE, "sparsity": 1, "scale": 1.0, "out": OUT}
MOMENTS = {"direction": DIRECTION, "squares": np.zeros(ROWS), "dots": np.zeros(ROWS)}
GOOD: dict[str, dict[str, Any]] = {
    "fwht": {"X": X, "out": np.zeros((ROWS, PADDED))},
    "srht": {"X": X, **SRHT},
    "srht_sparse": {**CSR, **SRHT},
    "sorf": {"X": X, **SORF, "out": OUT},
    "fourier": {"X": X, **SORF, "scale": 1.0, "out": np.zeros((ROWS, 2 * SIZE))},
    "tensor_srht": {
        "A": X,
        "B": X,
        "signs_first": PAIR_SIGNS,
        "signs_second": PAIR_SIGNS,
        "first": INDICES,
        "second": INDICES,
        "scale": 1.0,
        "out": OUT,
    },
    "scatter": {"X": X, **SCATTER},
    "scatter_sparse": {**CSR, **SCATTER},
    "scatter_sparse_hashed": {
        **CSR,
        "column_count": COLUMNS,
        "key": 1,
        "sparsity": 1,
        "scale": 1.0,
        "out": OUT,
    },
    "row_moments": {"X": X, **MOMENTS},
    "row_moments_sparse": {**CSR, "column_count": COLUMNS, **MOMENTS},
    "product": {"X": X, "matrix": MATRIX, "out": OUT},
    "gaussian_values": {
        "products": np.ones((ROWS, SIZE)),
        "left": np.ones(ROWS),
        "right": np.ones(SIZE),
        "gamma": 1.0,
        "out": OUT,
    },
    "gaussian_in_place": {
        "products": OUT,
        "left": np.ones(ROWS),
        "right": np.ones(SIZE),
        "gamma": 1.0,
    },
    "product_sparse": {**CSR, "matrix": MATRIX, "out": OUT},
}
SPARSE = [name for name, arguments in GOOD.items() if "indptr" in arguments]


def call(routine: str, **changes: Any) -> None:
    getattr(_native, routine)(**{**GOOD[routine], "threads": 1, **changes})


def changed(array: Any, position: int, value: int) -> Any:
    copy = array.copy()
    copy[position] = value
    return copy


def bad_values() -> list[tuple[str, dict[str, Any]]]:
    cases: list[tuple[str, dict[str, Any]]] = []
    for routine, arguments in GOOD.items():
        cases.append((routine, {"threads": 0}))
        if "out" in arguments:
            more_rows = np.zeros((ROWS + 1, arguments["out"].shape[1]))
            cases.append((routine, {"out": more_rows}))
            cases.append((routine, {"out": more_rows[: ROWS - 1]}))
    for routine in SPARSE:
        outside = (-1, COLUMNS, 2**31 - 1)
        cases += [(routine, {"columns": changed(CSR_COLUMNS, 3, bad)}) for bad in outside]
        cases += [
            (routine, {"columns": CSR_COLUMNS[:3]}),
            (routine, {"values": VALUES[:3]}),
            (routine, {"indptr": changed(INDPTR, 1, 4)}),
            (routine, {"indptr": changed(INDPTR, 3, 5)}),
            (routine, {"indptr": changed(INDPTR, 0, -1)}),
            (routine, {"indptr": np.zeros(0, dtype=np.int64)}),
        ]
    for routine in ("srht", "srht_sparse"):
        cases += [(routine, {"indices": changed(INDICES, 1, bad)}) for bad in (-1, PADDED)]
        cases += [(routine, {"padded": bad}) for bad in (0, 4, 12, 2**32)]
        cases.append((routine, {"out": np.zeros((ROWS, SIZE + 1))}))
    for routine in ("sorf", "fourier"):
        outside = (-1, BLOCKS * PADDED, 2**31 - 1)
        cases += [(routine, {"indices": changed(BLOCK_INDICES, 3, bad)}) for bad in outside]
        shapes = [
            (BLOCKS, 2, PADDED),
            (BLOCKS, 3, 4),
            (BLOCKS, 3, 12),
            (BLOCKS, 3, 0),
            (0, 3, PADDED),
        ]
        cases += [(routine, {"diagonals": np.ones(bad)}) for bad in shapes]
        cases += [
            (routine, {"indices": BLOCK_INDICES[::-1].copy()}),
            (routine, {"indices": BLOCK_INDICES[:3]}),
            (routine, {"scales": np.ones(SIZE + 1)}),
            (routine, {"out": np.zeros((ROWS, SIZE + 1))}),
        ]
    for name in ("first", "second"):
        cases += [("tensor_srht", {name: changed(INDICES, 1, bad)}) for bad in (-1, PADDED)]
        cases.append(("tensor_srht", {name: INDICES[:2]}))
        cases.append(("tensor_srht", {f"signs_{name}": PAIR_SIGNS[:4]}))
    for routine in ("scatter", "scatter_sparse"):
        cases += [(routine, {"table": changed(TABLE, 2, bad)}) for bad in (-1, 2 * SIZE)]
    cases += [
        ("fwht", {"out": np.zeros((ROWS, 6))}),
        ("fwht", {"out": np.zeros((ROWS, 4))}),
        ("fwht", {"out": np.zeros((ROWS, 0))}),
        ("srht", {"signs": SIGNS[:4]}),
        ("tensor_srht", {"B": X[:2]}),
        ("tensor_srht", {"out": np.zeros((ROWS, SIZE + 1))}),
        ("tensor_srht", {"A": np.ones((ROWS, PADDED + 1)), "B": np.ones((ROWS, PADDED + 1))}),
        ("scatter", {"table": TABLE[:4]}),
        ("scatter", {"sparsity": 2}),
        ("scatter_sparse", {"table": TABLE[:4]}),
        ("scatter_sparse", {"sparsity": 0}),
        ("scatter_sparse_hashed", {"sparsity": 0}),
        ("scatter_sparse_hashed", {"sparsity": SIZE + 1}),
        ("row_moments", {"direction": DIRECTION[:4]}),
        ("row_moments", {"squares": np.zeros(ROWS + 1)}),
        ("row_moments_sparse", {"direction": DIRECTION[:4]}),
        ("row_moments_sparse", {"dots": np.zeros(ROWS + 1)}),
        ("product", {"matrix": MATRIX[:4]}),
        ("product", {"matrix": np.ones((COLUMNS, SIZE + 1))}),
        ("gaussian_values", {"products": np.ones((ROWS + 1, SIZE))}),
        ("gaussian_values", {"products": np.ones((ROWS, SIZE + 1))}),
        ("gaussian_values", {"left": np.ones(ROWS - 1)}),
        ("gaussian_values", {"right": np.ones(SIZE - 1)}),
        ("gaussian_values", {"out": np.zeros((ROWS, SIZE + 1))}),
        ("gaussian_in_place", {"left": np.ones(ROWS - 1)}),
        ("gaussian_in_place", {"right": np.ones(SIZE - 1)}),
        ("product_sparse", {"matrix": MATRIX[:4]}),
        ("product_sparse", {"matrix": np.ones((COLUMNS, SIZE + 1))}),
    ]
    return cases


def bad_types() -> list[tuple[str, dict[str, Any]]]:
    cases: list[tuple[str, dict[str, Any]]] = []
    for routine, arguments in GOOD.items():
        cases.append((routine, {"threads": -1}))
        for name, argument in arguments.items():
            if isinstance(argument, np.ndarray):
                spaced = np.repeat(argument, 2, axis=-1)[..., ::2]
                other = argument.astype(np.float16 if argument.dtype.kind == "f" else np.int16)
                swapped = argument.astype(argument.dtype.newbyteorder())
                cases += [(routine, {name: bad}) for bad in (spaced, other, swapped, None)]
    for routine in SPARSE:
        cases.append((routine, {"indptr": INDPTR.astype(np.int32)}))
    read_only = OUT.copy()
    read_only.flags.writeable = False
    cases.append(("srht", {"out": read_only}))
    cases.append(("srht", {"signs": SIGNS.astype(np.float32)}))
    cases += [
        ("gaussian_values", {name: GOOD["gaussian_values"][name].astype(np.float32)})
        for name in ("products", "left", "right")
    ]
    return cases


@pytest.mark.parametrize("routine", GOOD)
def test_good_arguments_pass(routine: str) -> None:
    call(routine)


@pytest.mark.parametrize(("routine", "changes"), bad_values())
def test_bad_values_are_refused(routine: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        call(routine, **changes)


@pytest.mark.parametrize(("routine", "changes"), bad_types())
def test_bad_types_are_refused(routine: str, changes: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(routine, **changes)


def shared_outputs() -> list[tuple[str, str]]:
    """Return every routine with the names of the arrays that it reads while it writes `out`."""
    read = ("X", "A", "B", "matrix", "values", "products")
    return [
        (routine, name)
        for routine, arguments in GOOD.items()
        if "out" in arguments
        for name in read
        if name in arguments
    ]


@pytest.mark.parametrize(("routine", "name"), shared_outputs())
def test_out_shares_no_memory_with_what_is_read(routine: str, name: str) -> None:
    given, out = GOOD[routine][name], GOOD[routine]["out"]
    memory = np.ones(given.size + out.size)
    inside = {
        name: memory[: given.size].reshape(given.shape),
        "out": memory[given.size - 1 :][: out.size].reshape(out.shape),
    }
    with pytest.raises(ValueError, match="out shares memory with an array that is read"):
        call(routine, **inside)
    inside["out"] = memory[given.size :].reshape(out.shape)
    call(routine, **inside)


@pytest.mark.parametrize("routine", GOOD)
def test_no_rows_at_all(routine: str) -> None:
    """Arrays without entries have no place in memory, and are nobody's neighbours."""
    empty: dict[str, Any] = {}
    for name, value in GOOD[routine].items():
        if name in (
            "X",
            "A",
            "B",
            "out",
            "squares",
            "dots",
            "values",
            "columns",
            "products",
            "left",
        ):
            empty[name] = value[:0]
    if routine in SPARSE:
        empty["indptr"] = INDPTR[:1]
    call(routine, **empty)


@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("indptr", [[], [1, 4], [0, 3], [0, 5], [0, 3, 2, 4], [0, -1, 4]])
def test_row_structure_needs_pointers_that_fit(indptr: list[int], size: int) -> None:
    indices = np.arange(size, dtype=np.int32)
    with pytest.raises(ValueError, match="the row pointers do not fit the indices"):
        _native.row_structure(np.array(indptr, dtype=np.int64), indices, 9)


def test_hashed_buckets_are_as_many_as_copies() -> None:
    with pytest.raises(ValueError, match="at least as many outputs as copies"):
        call("scatter_sparse_hashed", sparsity=SIZE + 1)


def test_a_table_has_all_copies_of_a_column() -> None:
    with pytest.raises(ValueError, match="targets per column"):
        call("scatter_sparse", sparsity=2)


def test_unknown_instruction_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'mmx' is not available here; use one of: baseline"):
        _native.select_instruction_set("mmx")


class TestChain:
    SHAPE = Shape(ROWS, COLUMNS, PADDED)
    SPEC = chain_spec(SHAPE, PADDED, leaf="identity", shift=True, preserve_norms=True)
    SRHT_SPEC = chain_spec(SHAPE, PADDED, leaf="srht", shift=True, preserve_norms=True)

    SCATTER_SPEC = chain_spec(SHAPE, PADDED, leaf="scatter", shift=True, preserve_norms=True)

    @staticmethod
    def edited(spec: ChainSpec, array: str, row: int, column: int, value: int) -> ChainSpec:
        copy = getattr(spec, array).copy()
        copy[row, column] = value
        return replace(spec, **{array: copy})

    @staticmethod
    def make(spec: ChainSpec) -> Any:
        return compiled.make_chain(spec, np.dtype(np.float64))

    @pytest.mark.parametrize(
        "spec", [SPEC, SRHT_SPEC, SCATTER_SPEC], ids=["identity", "srht", "scatter"]
    )
    def test_good_chains_pass(self, spec: ChainSpec) -> None:
        self.apply(spec)

    def apply(self, spec: ChainSpec, **changes: Any) -> None:
        arguments = {
            "X": X,
            "row_scale": np.ones(ROWS),
            "row_shift": np.ones(ROWS),
            "block_scales": np.ones((ROWS, 3)),
            "out": np.zeros((ROWS, 20)),
            "threads": 1,
        }
        self.make(spec).apply(**{**arguments, **changes})

    @pytest.mark.parametrize("value", [-1, 3, 2**31 - 1])
    @pytest.mark.parametrize("column", [0, 1, 2])
    def test_steps_name_registers(self, column: int, value: int) -> None:
        with pytest.raises(ValueError, match="a step names no register"):
            self.make(self.edited(self.SPEC, "steps", 1, column, value))

    @pytest.mark.parametrize("value", [-1, 0, PADDED + 1, 2**31 - 1])
    def test_steps_compute_as_many_rows_as_the_pair_sketch_has(self, value: int) -> None:
        with pytest.raises(ValueError, match="more rows than the pair sketch has"):
            self.make(self.edited(self.SPEC, "steps", 1, 3, value))

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            (0, -1),
            (0, 3),
            (1, -1),
            (1, PADDED),
            (1, 2**31 - 1),
            (2, 0),
            (2, PADDED + 1),
            (2, 2**31 - 1),
            (3, -1),
            (4, -1),
            (4, 0),
            (4, 4),
        ],
    )
    def test_blocks_lie_inside_their_register(self, column: int, value: int) -> None:
        with pytest.raises(ValueError, match="outside its register or out of order"):
            self.make(self.edited(self.SPEC, "outputs", 2, column, value))

    @pytest.mark.parametrize("start", [1, PADDED - 3])
    def test_blocks_lie_inside_what_was_computed(self, start: int) -> None:
        """The block is as long as what its step computes."""
        size = int(self.SPEC.outputs[2, 2])
        short = self.edited(self.SPEC, "steps", 2, 3, size)
        self.make(short)
        with pytest.raises(ValueError, match="outside its register or out of order"):
            self.make(self.edited(short, "outputs", 2, 1, start))

    @pytest.mark.parametrize("column", [0, 1])
    def test_steps_read_what_was_computed(self, column: int) -> None:
        with pytest.raises(ValueError, match="PowerChain"):
            self.make(self.edited(self.SPEC, "steps", 0, column, 2))

    def test_products_read_whole_registers(self) -> None:
        with pytest.raises(ValueError, match="PowerChain"):
            self.make(self.edited(self.SPEC, "steps", 1, 3, PADDED - 1))

    def test_blocks_of_the_leaf_lie_inside_the_leaf(self) -> None:
        half = PADDED // 2
        spec = replace(self.SRHT_SPEC, outputs=np.array([[0, half, half, 0, 0]], dtype=np.int32))
        with pytest.raises(ValueError, match="outside its register or out of order"):
            self.make(spec)

    @pytest.mark.parametrize(
        "changes",
        [
            {"columns": PADDED + 1},
            {"leaf_length": 3},
            {"leaf_length": 0},
            {"leaf_length": 2 * PADDED, "leaf_shift": np.ones(2 * PADDED)},
            {"leaf_shift": np.ones(3)},
            {"registers": 0},
            {"registers": 65},
            {"steps": np.zeros((1, 3), dtype=np.int32)},
            {"outputs": np.zeros((1, 4), dtype=np.int32)},
        ],
        ids=str,
    )
    def test_inconsistent_chains_are_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="PowerChain"):
            self.make(replace(self.SPEC, **changes))

    def test_srht_leaf_has_the_length_of_the_leaf(self) -> None:
        leaf = self.SRHT_SPEC.leaf
        assert isinstance(leaf, SrhtSpec)
        short = replace(leaf, indices=leaf.indices[:3])
        with pytest.raises(ValueError, match="leaf samples leaf_length rows"):
            self.make(replace(self.SRHT_SPEC, leaf=short))
        outside = replace(leaf, indices=changed(leaf.indices, 0, PADDED))
        with pytest.raises(ValueError, match="outside the array"):
            self.make(replace(self.SRHT_SPEC, leaf=outside))

    @pytest.mark.parametrize("target", [-1, 6, 2**31 - 1])
    def test_scatter_leaf_has_buckets_for_its_table(self, target: int) -> None:
        leaf = self.SCATTER_SPEC.leaf
        assert isinstance(leaf, ScatterSpec)
        assert leaf.size == 3
        table = leaf.table.copy()
        table[2, 0] = target
        with pytest.raises(ValueError, match="outside the array"):
            self.make(replace(self.SCATTER_SPEC, leaf=replace(leaf, table=table)))

    @pytest.mark.parametrize("size", [0, PADDED // 2 + 1])
    def test_scatter_leaf_fits_the_leaf(self, size: int) -> None:
        leaf = self.SCATTER_SPEC.leaf
        assert isinstance(leaf, ScatterSpec)
        with pytest.raises(ValueError, match="at most leaf_length buckets"):
            self.make(replace(self.SCATTER_SPEC, leaf=replace(leaf, size=size)))
        with pytest.raises(ValueError, match="one row per column"):
            self.make(replace(self.SCATTER_SPEC, columns=COLUMNS + 1))

    @pytest.mark.parametrize(
        "changes",
        [
            {"X": np.ones((ROWS, COLUMNS + 1))},
            {"X": np.ones((ROWS + 1, COLUMNS))},
            {"row_scale": np.ones(ROWS - 1)},
            {"row_shift": np.ones(0)},
            {"block_scales": np.ones((ROWS, 2))},
            {"block_scales": np.ones((ROWS - 1, 3))},
            {"out": np.zeros((ROWS, 14))},
            {"out": np.zeros((ROWS - 1, 20))},
            {"threads": 0},
        ],
        ids="-".join,
    )
    def test_rows_of_wrong_shape_are_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"wrong shapes|threads must be"):
            self.apply(self.SPEC, **changes)

    def test_a_shift_needs_a_direction(self) -> None:
        without = replace(self.SPEC, leaf_shift=np.zeros(0))
        with pytest.raises(ValueError, match="wrong shapes"):
            self.apply(without)


def transform_of(tables: FourierTables) -> Any:
    arrays = {name: getattr(tables, name) for name in tables.__dataclass_fields__}
    return _native.FourierTransform64(**arrays)


class TestFourierTransform:
    EVEN, ODD = fourier_tables(12), fourier_tables(15)

    @pytest.mark.parametrize("tables", [EVEN, ODD], ids=["even", "odd"])
    def test_good_tables_pass(self, tables: FourierTables) -> None:
        transform_of(tables)

    @pytest.mark.parametrize(
        ("tables", "changes"),
        [
            (EVEN, {"length": 0}),
            (EVEN, {"length": 14}),
            (EVEN, {"length": 2**30}),
            (EVEN, {"radices": np.array([3, 4], dtype=np.int32)}),
            (EVEN, {"radices": np.array([3], dtype=np.int32)}),
            (EVEN, {"radices": np.array([6], dtype=np.int32)}),
            (EVEN, {"radices": np.array([0, 3, 2], dtype=np.int32)}),
            (EVEN, {"radices": np.array([-2, 3], dtype=np.int32)}),
            (EVEN, {"twiddles": EVEN.twiddles[1:]}),
            (EVEN, {"twiddles": np.ones((len(EVEN.twiddles) + 1, 2))}),
            (EVEN, {"twiddles": np.ones((len(EVEN.twiddles), 3))}),
            (EVEN, {"positions": EVEN.positions[1:]}),
            (EVEN, {"positions": changed(EVEN.positions, 2, 6)}),
            (EVEN, {"positions": changed(EVEN.positions, 2, -1)}),
            (EVEN, {"roots": EVEN.roots[1:]}),
            (ODD, {"roots": EVEN.roots}),
        ],
    )
    def test_tables_that_do_not_fit_are_refused(
        self, tables: FourierTables, changes: dict[str, Any]
    ) -> None:
        with pytest.raises(ValueError, match=r"fft: |outside the array"):
            transform_of(replace(tables, **changes))


class TestTensorSketch:
    SPEC = tensor_sketch_spec(Shape(ROWS, COLUMNS, SIZE), shift=True, preserve_norms=True)
    FACTORS: ClassVar[dict[str, Any]] = {
        "row_scale": np.ones(ROWS),
        "row_shift": np.ones(ROWS),
        "block_scales": np.ones((ROWS, 3)),
        "out": np.zeros((ROWS, 15)),
        "threads": 1,
    }

    @staticmethod
    def make(spec: TensorSketchSpec, **changes: Any) -> Any:
        arguments = {
            "columns": spec.columns,
            "blocks": spec.blocks,
            "transforms": [
                transform_of(fourier_tables(size)) for size in spec.blocks[:, 1].tolist()
            ],
            "keys": spec.keys,
            "shifts": np.ones(int((spec.blocks[:, 0] * spec.blocks[:, 1]).sum())),
            "tabulated": True,
            "preserve_norms": True,
        }
        return _native.TensorSketch64(**{**arguments, **changes})

    @pytest.mark.parametrize("sparse", [False, True])
    def test_good_arguments_pass(self, sparse: bool) -> None:
        sketch = self.make(self.SPEC, tabulated=not sparse)
        if sparse:
            assert sketch.apply_sparse(**CSR, **self.FACTORS)
        else:
            assert sketch.apply(X=X, **self.FACTORS)

    @pytest.mark.parametrize(
        "changes",
        [
            {"blocks": SPEC.blocks[:2]},
            {"blocks": np.ascontiguousarray(SPEC.blocks[:, :2])},
            {"blocks": SPEC.blocks - np.array([1, 0, 0], dtype=np.int32)},
            {"blocks": SPEC.blocks + np.array([0, 1, 0], dtype=np.int32)},
            {"blocks": SPEC.blocks - np.array([0, 0, 3], dtype=np.int32)},
            {"transforms": []},
            {"transforms": [None] * 3},
            {"columns": 2**61 + 1},  # as many tables would wrap around to a few entries
            {"keys": SPEC.keys[1:]},
            {"shifts": np.ones(3)},
        ],
    )
    def test_inconsistent_sketches_are_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="TensorSketch: "):
            self.make(self.SPEC, **changes)

    @pytest.mark.parametrize(
        "changes",
        [
            {"row_scale": np.ones(ROWS - 1)},
            {"row_shift": np.ones(0)},
            {"block_scales": np.ones((ROWS, 2))},
            {"block_scales": np.ones((ROWS + 1, 3))},
            {"out": np.zeros((ROWS, 14))},
            {"out": np.zeros((ROWS - 1, 15))},
            {"threads": 0},
        ],
        ids="-".join,
    )
    def test_rows_of_wrong_shape_are_refused(self, changes: dict[str, Any]) -> None:
        sketch, factors = self.make(self.SPEC), {**self.FACTORS, **changes}
        with pytest.raises(ValueError, match=r"wrong shapes|threads must be"):
            sketch.apply(X=X, **factors)
        with pytest.raises(ValueError, match=r"wrong shapes|threads must be"):
            sketch.apply_sparse(**CSR, **factors)

    @pytest.mark.parametrize("columns", [COLUMNS - 1, COLUMNS + 1])
    def test_rows_have_as_many_columns_as_the_sketch(self, columns: int) -> None:
        with pytest.raises(ValueError, match="wrong shapes"):
            self.make(self.SPEC).apply(X=np.ones((ROWS, columns)), **self.FACTORS)

    @pytest.mark.parametrize("bad", [-1, COLUMNS, 2**31 - 1])
    def test_sparse_columns_are_checked(self, bad: int) -> None:
        broken = {**CSR, "columns": changed(CSR_COLUMNS, 3, bad)}
        with pytest.raises(ValueError, match="outside the array"):
            self.make(self.SPEC).apply_sparse(**broken, **self.FACTORS)

    def test_a_shift_needs_a_direction(self) -> None:
        with pytest.raises(ValueError, match="wrong shapes"):
            self.make(self.SPEC, shifts=np.ones(0)).apply(X=X, **self.FACTORS)
