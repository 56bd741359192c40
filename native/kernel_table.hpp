// The kernels of one instruction set as a table of plain functions: all that crosses the border
// between translation units compiled for different machines.
#pragma once
#include "plans.hpp"

namespace powersketch {

template <class T, class I> struct SparseKernels {
    void (*srht)(const SrhtPlan<T> &, SparseRows<T, I>, Rows<T>, std::size_t, std::size_t, char *);
    void (*scatter)(const ScatterPlan<T> &, SparseRows<T, I>, Rows<T>, std::size_t, std::size_t);
    void (*moments)(SparseRows<T, I>, const double *, double *, double *, std::size_t, std::size_t);
    void (*product)(std::size_t, const T *, SparseRows<T, I>, Rows<T>, std::size_t, std::size_t);
    bool (*tensor)(const TensorPlan<T> &, SparseRows<T, I>, const ChainRows<T> &, std::size_t,
                   std::size_t, char *);
};

// Row kernels work on rows begin .. end with a thread's own workspace of the size asked for.
template <class T> struct Kernels {
    std::size_t (*transform_workspace)(std::size_t padded);
    void (*transform)(std::size_t columns, std::size_t padded, Rows<const T>, Rows<T>, std::size_t,
                      std::size_t, char *);
    std::size_t (*srht_workspace)(const SrhtPlan<T> &);
    void (*srht)(const SrhtPlan<T> &, Rows<const T>, Rows<T>, std::size_t, std::size_t, char *);
    std::size_t (*srht_sparse_workspace)(const SrhtPlan<T> &);
    std::size_t (*sorf_workspace)(const SorfPlan<T> &);
    void (*sorf)(const SorfPlan<T> &, Rows<const T>, Rows<T>, std::size_t, std::size_t, char *);
    void (*fourier)(const SorfPlan<T> &, T scale, Rows<const T>, Rows<T>, std::size_t, std::size_t,
                    char *);
    std::size_t (*pair_workspace)(const PairPlan<T> &, std::size_t size);
    void (*pair)(const PairPlan<T> &, std::size_t columns, std::size_t size, T scale, Rows<const T>,
                 Rows<const T>, Rows<T>, std::size_t, std::size_t, char *);
    std::size_t (*chain_workspace)(const ChainPlan<T> &);
    bool (*chain)(const ChainPlan<T> &, const ChainRows<T> &, std::size_t, std::size_t, char *);
    std::size_t (*scatter_workspace)(const ScatterPlan<T> &);
    void (*scatter)(const ScatterPlan<T> &, Rows<const T>, Rows<T>, std::size_t, std::size_t, char *);
    void (*moments)(std::size_t columns, Rows<const T>, const double *, double *, double *,
                    std::size_t, std::size_t);
    void (*product)(std::size_t columns, std::size_t size, const T *, Rows<const T>, Rows<T>,
                    std::size_t, std::size_t);
    void (*gaussian)(std::size_t columns, double gamma, Rows<const double>, const double *left,
                     const double *right, Rows<T>, std::size_t, std::size_t);
    std::size_t (*convolve_workspace)(const FftPlan<T> &);
    void (*convolve)(const FftPlan<T> &, Rows<const T>, Rows<const T>, Rows<T>, std::size_t,
                     std::size_t, char *);
    void (*tabulate)(const ScatterPlan<T> &, std::int32_t *table);
    std::size_t (*tensor_workspace)(const TensorPlan<T> &);
    bool (*tensor)(const TensorPlan<T> &, const ChainRows<T> &, std::size_t, std::size_t, char *);
    SparseKernels<T, std::int32_t> sparse32;
    SparseKernels<T, std::int64_t> sparse64;
};

struct InstructionSet {
    const char *name;
    Kernels<float> single;
    Kernels<double> full;
    // Independent vector additions, the yardstick of the benchmarks: how many were done.
    double (*add_peak)(std::size_t rounds, float *sink);
};

const InstructionSet &baseline_instructions();
#ifdef POWERSKETCH_X86
const InstructionSet &avx2_instructions();
const InstructionSet &avx512_instructions();
#endif

} // namespace powersketch
