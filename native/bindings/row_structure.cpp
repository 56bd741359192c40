// What must hold of compressed sparse rows before anything may follow their indices.
#include "arrays.hpp"

#include <limits>
#include <nanobind/stl/tuple.h>
#include <tuple>

namespace powersketch {
namespace {

struct IndexScan {
    bool outside;      // one of them is negative or above the last one allowed
    std::size_t drops; // how many are below the one before them
    std::size_t ties;  // how many equal the one before them
};

// One pass without branches, which every instruction set can do in vectors: all is read from the
// sign bits of differences.
template <class I> IndexScan scan_indices(const I *indices, std::size_t count, I last) {
    using Word = std::make_unsigned_t<I>;
    constexpr int sign = 8 * sizeof(I) - 1;
    constexpr std::size_t block = std::size_t(1) << 15; // so that a Word can count
    IndexScan scan{false, 0, 0};
    for (std::size_t begin = 0; begin < count; begin += block) {
        const std::size_t end = std::min(begin + block, count);
        Word signs = begin ? 0 : Word(indices[0]) | (Word(last) - Word(indices[0]));
        Word drops = 0, rises = 0;
        for (std::size_t i = std::max(begin, std::size_t(1)); i < end; ++i) {
            const Word here = Word(indices[i]), before = Word(indices[i - 1]);
            signs |= here | (Word(last) - here);
            drops += (here - before) >> sign;
            rises += (before - here) >> sign;
        }
        scan.outside |= signs >> sign != 0;
        scan.drops += drops;
        scan.ties += end - std::max(begin, std::size_t(1)) - drops - rises;
    }
    return scan;
}

// Where the first index below zero or above `last` is.
template <class I> std::int64_t first_outside(const I *indices, std::size_t count, I last) {
    const I *found = std::find_if(indices, indices + count, [=](I i) { return i < 0 || i > last; });
    return found - indices;
}

// The first position in `indices` that holds no number from 0 to bound − 1 (−1 if there is none),
// whether the indices of every row ascend, and whether no two of a row are equal, either.
template <class I>
std::tuple<std::int64_t, bool, bool> row_structure(Vector<std::int64_t> indptr, Vector<I> indices,
                                                   std::size_t bound) {
    const std::int64_t *p = indptr.data();
    const std::size_t rows = indptr.shape(0), count = indices.shape(0);
    require(rows > 0 && p[0] == 0 && std::size_t(p[rows - 1]) == count &&
                std::is_sorted(p, p + rows),
            "row_structure: the row pointers do not fit the indices");
    nb::gil_scoped_release released;
    const I largest = std::numeric_limits<I>::max();
    const I last = bound > std::size_t(largest) ? largest : I(I(bound) - 1);
    const IndexScan scan = scan_indices(indices.data(), count, last);
    if (scan.outside)
        return {first_outside(indices.data(), count, last), false, false};
    // Between the last index of a row and the first one of the next, anything is allowed.
    std::size_t drops = 0, ties = 0;
    for (std::size_t i = 1; i + 1 < rows; ++i)
        if (p[i] != p[i - 1] && std::size_t(p[i]) < count) {
            drops += indices.data()[p[i]] < indices.data()[p[i] - 1];
            ties += indices.data()[p[i]] == indices.data()[p[i] - 1];
        }
    return {-1, scan.drops == drops, scan.drops == drops && scan.ties == ties};
}

template <class I> void bind_index(nb::module_ &m) {
    m.def("row_structure", row_structure<I>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "bound"_a);
}

} // namespace

void bind_row_structure(nb::module_ &m) {
    bind_index<std::int32_t>(m);
    bind_index<std::int64_t>(m);
}

} // namespace powersketch
