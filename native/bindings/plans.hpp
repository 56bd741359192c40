// Plans from arrays, once these are checked: what routines read stays inside its array.
#pragma once
#include "arrays.hpp"

namespace powersketch {

template <class T>
SrhtPlan<T> srht_plan(std::size_t columns, std::size_t sign_count, std::size_t padded,
                      const Vector<std::int32_t> &indices, double scale) {
    require(is_power_of_two(padded) && columns <= padded && padded <= (std::size_t(1) << 31),
            "srht: padded must be a power of two, at least the columns and at most 2**31");
    require(sign_count == columns, "srht: one sign per column is needed");
    require_below(indices.data(), indices.shape(0), padded);
    SrhtPlan<T> plan{};
    plan.columns = columns;
    plan.padded = padded;
    plan.size = indices.shape(0);
    plan.indices = indices.data();
    plan.scale = T(scale);
    return plan;
}

// Without the signs.
template <class T>
PairPlan<T> pair_plan(std::size_t first_signs, std::size_t second_signs,
                      const Vector<std::int32_t> &first, const Vector<std::int32_t> &second) {
    require(is_power_of_two(first_signs) && second_signs == first_signs &&
                first.shape(0) == second.shape(0),
            "TensorSRHT: equally many signs (a power of two) and equally many indices are needed");
    require_below(first.data(), first.shape(0), first_signs);
    require_below(second.data(), second.shape(0), first_signs);
    PairPlan<T> plan{};
    plan.length = first_signs;
    plan.first = first.data();
    plan.second = second.data();
    return plan;
}

template <class T>
ScatterPlan<T> scatter_plan(std::size_t columns, std::size_t size, std::size_t sparsity,
                            const std::int32_t *table, double scale) {
    require(sparsity >= 1 && sparsity <= kMostCopies,
            "scatter: sparsity must lie between 1 and 64");
    if (table)
        require_below(table, columns * sparsity, 2 * size);
    ScatterPlan<T> plan{};
    plan.columns = columns;
    plan.size = size;
    plan.sparsity = sparsity;
    plan.table = table;
    plan.scale = T(scale);
    return plan;
}

} // namespace powersketch
