// The Python face of the routines, whose typed contract is src/powersketch/_native.pyi. Bindings
// check shapes and indices, release the GIL and share out rows; each family has its file.
#include "arrays.hpp"

#include <chrono>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

// Additions per second of the instruction set in use, on one core, without touching memory.
static double add_peak() {
    float sink[64] = {};
    const auto start = std::chrono::steady_clock::now();
    const double additions = powersketch::instruction_set().add_peak(std::size_t(1) << 22, sink);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return additions / elapsed.count();
}

NB_MODULE(_native, m) {
    using namespace powersketch;
    // Estimators that live until the process ends keep their compiled chains: that is no leak.
    nb::set_leak_warnings(false);
    m.def("instruction_sets", available_instruction_sets);
    m.def("instruction_set", [] { return std::string(instruction_set().name); });
    m.def("select_instruction_set", select_instruction_set, "name"_a);
    m.def("add_peak", add_peak);
    bind_row_structure(m);
    bind_transforms(m);
    bind_sums(m);
    bind_chain(m);
    bind_tensor_sketch(m);
}
