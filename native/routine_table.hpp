// The routines of one instruction set as a table of plain functions: all that crosses the border
// between translation units compiled for different machines.
#pragma once
#include "plans.hpp"

namespace powersketch {

template <class T, class I> struct SparseRoutines {
    void (*srht)(const SrhtPlan<T> &, SparseRows<T, I>, Rows<T>, Share);
    void (*scatter)(const ScatterPlan<T> &, SparseRows<T, I>, Rows<T>, Share);
    void (*moments)(const MomentsPlan &, SparseRows<T, I>, Share);
    void (*product)(const ProductPlan<T> &, SparseRows<T, I>, Rows<T>, Share);
    bool (*tensor)(const TensorPlan<T> &, SparseRows<T, I>, const ChainRows<T> &, Share);
};

// A routine works on its share of the rows, with a workspace of the size that it asks for. Those
// that return a bool say whether all features are representable.
template <class T> struct Routines {
    std::size_t (*transform_workspace)(const TransformPlan &);
    void (*transform)(const TransformPlan &, Rows<const T>, Rows<T>, Share);
    std::size_t (*srht_workspace)(const SrhtPlan<T> &);
    void (*srht)(const SrhtPlan<T> &, Rows<const T>, Rows<T>, Share);
    std::size_t (*srht_sparse_workspace)(const SrhtPlan<T> &);
    std::size_t (*pair_workspace)(const PairRowsPlan<T> &);
    void (*pair)(const PairRowsPlan<T> &, Rows<const T> left, Rows<const T> right, Rows<T>, Share);
    std::size_t (*sorf_workspace)(const SorfPlan<T> &);
    void (*sorf)(const SorfPlan<T> &, Rows<const T>, Rows<T>, Share);
    void (*fourier)(const SorfPlan<T> &, Rows<const T>, Rows<T>, Share);
    std::size_t (*scatter_workspace)(const ScatterPlan<T> &);
    void (*scatter)(const ScatterPlan<T> &, Rows<const T>, Rows<T>, Share);
    void (*tabulate)(const ScatterPlan<T> &, std::int32_t *table);
    void (*moments)(const MomentsPlan &, Rows<const T>, Share);
    std::size_t (*product_workspace)(const ProductPlan<T> &);
    void (*product)(const ProductPlan<T> &, Rows<const T>, Rows<T>, Share);
    std::size_t (*normal_workspace)(const NormalPlan<T> &);
    void (*normal)(const NormalPlan<T> &, Rows<const T>, Share);
    void (*gaussian)(const GaussianPlan &, Rows<const double> products, Rows<T>, Share);
    void (*gaussian_of_own)(const GaussianPlan &, Rows<const T> products, Rows<T>, Share);
    std::size_t (*chain_workspace)(const ChainPlan<T> &);
    bool (*chain)(const ChainPlan<T> &, const ChainRows<T> &, Share);
    std::size_t (*tensor_workspace)(const TensorPlan<T> &);
    bool (*tensor)(const TensorPlan<T> &, const ChainRows<T> &, Share);
    SparseRoutines<T, std::int32_t> sparse32;
    SparseRoutines<T, std::int64_t> sparse64;
};

struct InstructionSet {
    const char *name;
    Routines<float> single;
    Routines<double> full;
    // Independent vector additions, the yardstick of the benchmarks: how many were done.
    double (*add_peak)(std::size_t rounds, float *sink);
};

const InstructionSet &baseline_instructions();
#ifdef POWERSKETCH_X86
const InstructionSet &avx2_instructions();
const InstructionSet &avx512_instructions();
#endif

} // namespace powersketch
