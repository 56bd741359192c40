// Every kernel, compiled for one instruction set. The including file defines PS_NAME (the public
// name), PS_ENTRY (the function that hands out the table) and PS_VECTOR_BYTES. Everything else
// has internal linkage: no code compiled for one machine may be linked into another's path.
#include "kernel_table.hpp"
#include <type_traits>
#include <utility>

namespace powersketch {
namespace {
#include "vector.hpp"

#include "hadamard.hpp"

#include "srht.hpp"

#include "sorf.hpp"

#include "scatter.hpp"

#include "chain.hpp"

#include "fft.hpp"

#include "tensor_sketch.hpp"

#include "moments.hpp"

#include "exponential.hpp"

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

template <class T, class I> constexpr SparseKernels<T, I> sparse_kernels() {
    return {srht_sparse_rows<T, I>, scatter_sparse_rows<T, I>, moments_sparse_rows<T, I>,
            product_sparse_rows<T, I>, tensor_sparse_rows<T, I>};
}
template <class T> constexpr Kernels<T> kernels() {
    return {transform_workspace<T>, transform_rows<T>,
            srht_workspace<T>,      srht_rows<T>,
            srht_sparse_workspace<T>,
            sorf_workspace<T>,      sorf_rows<T>,
            fourier_rows<T>,
            pair_workspace<T>,      pair_rows<T>,
            chain_workspace<T>,     chain_rows<T>,
            scatter_workspace<T>,   scatter_rows<T>,
            moments_rows<T>,        product_rows<T>,
            gaussian_rows<T>,
            convolve_workspace<T>,  convolve_rows<T>,
            tabulate_targets<T>,
            tensor_workspace<T>,    tensor_rows<T>,
            sparse_kernels<T, std::int32_t>(),
            sparse_kernels<T, std::int64_t>()};
}
constexpr InstructionSet table = {PS_NAME, kernels<float>(), kernels<double>(), add_peak};
} // namespace

const InstructionSet &PS_ENTRY() { return table; }
} // namespace powersketch
