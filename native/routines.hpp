// Every routine, compiled for one instruction set. The including file defines PS_NAME (the public
// name), PS_ENTRY (the function that hands out the table) and PS_VECTOR_BYTES. Everything else
// has internal linkage: no code compiled for one machine may be linked into another's path.
#include "routine_table.hpp"
#include <type_traits>
#include <utility>

namespace powersketch {
namespace {
// Each of these uses those above it.
// clang-format off
#include "vector.hpp"
#include "hadamard.hpp"
#include "rows.hpp"
#include "sums.hpp"
#include "srht.hpp"
#include "sorf.hpp"
#include "scatter.hpp"
#include "chain.hpp"
#include "fourier.hpp"
#include "tensor_sketch.hpp"
#include "products.hpp"
#include "normal_products.hpp"
#include "exponential.hpp"
// clang-format on

// Twelve independent sums of vectors, enough to hide the latency of an addition.
double add_peak(std::size_t rounds, float *sink) {
    Vec<float> sum[12];
    for (std::size_t i = 0; i < 12; ++i)
        sum[i] = broadcast(float(i));
    const Vec<float> step = broadcast(sink[0]);
    for (std::size_t n = 0; n < rounds; ++n) {
#pragma GCC unroll 12
        for (std::size_t i = 0; i < 12; ++i)
            sum[i] += step;
    }
    for (std::size_t i = 1; i < 12; ++i)
        sum[0] += sum[i];
    store_unaligned(sink, sum[0]);
    return double(rounds) * 12 * kLanes<float>;
}

// Assigned by name: functions of the same type could be swapped unnoticed in a list.
template <class T, class I> constexpr SparseRoutines<T, I> sparse_routines() {
    SparseRoutines<T, I> table{};
    table.srht = srht_sparse_rows<T, I>;
    table.scatter = scatter_sparse_rows<T, I>;
    table.moments = moments_sparse_rows<T, I>;
    table.product = product_sparse_rows<T, I>;
    table.tensor = tensor_sparse_rows<T, I>;
    return table;
}
template <class T> constexpr Routines<T> routines() {
    Routines<T> table{};
    table.transform_workspace = transform_workspace<T>;
    table.transform = transform_rows<T>;
    table.srht_workspace = srht_workspace<T>;
    table.srht = srht_rows<T>;
    table.srht_sparse_workspace = srht_sparse_workspace<T>;
    table.pair_workspace = pair_workspace<T>;
    table.pair = pair_rows<T>;
    table.sorf_workspace = sorf_workspace<T>;
    table.sorf = sorf_rows<T>;
    table.fourier = fourier_rows<T>;
    table.scatter_workspace = scatter_workspace<T>;
    table.scatter = scatter_rows<T>;
    table.tabulate = tabulate_targets<T>;
    table.moments = moments_rows<T>;
    table.product_workspace = product_workspace<T>;
    table.product = product_rows<T>;
    table.normal_workspace = normal_workspace<T>;
    table.normal = normal_rows<T>;
    table.gaussian = gaussian_rows<double, T>;
    table.gaussian_of_own = gaussian_rows<T, T>;
    table.chain_workspace = chain_workspace<T>;
    table.chain = chain_rows<T>;
    table.tensor_workspace = tensor_workspace<T>;
    table.tensor = tensor_rows<T>;
    table.sparse32 = sparse_routines<T, std::int32_t>();
    table.sparse64 = sparse_routines<T, std::int64_t>();
    return table;
}
constexpr InstructionSet instructions = {PS_NAME, routines<float>(), routines<double>(), add_peak};
} // namespace

const InstructionSet &PS_ENTRY() { return instructions; }
} // namespace powersketch
