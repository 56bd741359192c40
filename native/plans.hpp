// Plain descriptions of the work that the routines do, shared by every instruction set: no code.
#pragma once
#include <cstddef>
#include <cstdint>

namespace powersketch {

// Rows of a matrix: element (i, j) is data[i * stride + j].
template <class T> struct Rows {
    T *data;
    std::size_t stride;
    T *row(std::size_t i) const { return data + i * stride; }
};

// Rows of a compressed sparse matrix; row i is entries indptr[i] .. indptr[i + 1].
template <class T, class I> struct SparseRows {
    const T *values;
    const I *columns;
    const std::int64_t *indptr;
};

// What one thread does of a call: the rows begin .. end, with scratch memory of its own.
struct Share {
    std::size_t begin, end;
    char *workspace;
};

// Hadamard transform: H x, x padded with zeros.
struct TransformPlan {
    std::size_t columns; // length of x
    std::size_t padded;  // power of two, >= columns
};

// Subsampled randomised Hadamard transform: scale * (H D x)[indices], x padded to `padded`.
template <class T> struct SrhtPlan {
    std::size_t columns; // length of x
    std::size_t padded;  // power of two, >= columns
    std::size_t size;    // number of sampled coordinates
    const T *signs;      // `columns` entries of +-1
    const std::int32_t *indices;
    T scale;
};

// TensorSRHT (Definition 2.9 of the paper): (H D1 a)[first] * (H D2 b)[second], up to a scale that
// depends on the use.
template <class T> struct PairPlan {
    std::size_t length; // of the operands, padded with zeros: a power of two
    const T *signs_first, *signs_second;
    const std::int32_t *first, *second;
};

// TensorSRHT of given rows.
template <class T> struct PairRowsPlan {
    PairPlan<T> pair;
    std::size_t columns; // of both operands, <= pair.length
    std::size_t size;    // number of index pairs
    T scale;
};

constexpr std::size_t kMostCopies = 64;

// CountSketch and OSNAP: every coordinate is added, with a sign, to `sparsity` buckets, one in
// each band of the output. The buckets come from a table (2 * bucket + negative) or, with a null
// table, from a hash of the coordinate's number.
template <class T> struct ScatterPlan {
    std::size_t columns, size, sparsity;
    const std::int32_t *table;
    std::uint64_t key;
    T scale;
};

// Structured orthogonal projections: scales[k] * (H D3 H D2 H D1 x)[indices[k]], several blocks of
// H D3 H D2 H D1 one below the other, x padded to `padded`.
template <class T> struct SorfPlan {
    std::size_t columns; // length of x
    std::size_t padded;  // power of two, >= columns
    std::size_t blocks;
    const T *diagonals;          // D1, D2, D3 of every block: signs times a power of two
    const std::int32_t *indices; // ordered by block, which is indices[k] / padded
    const T *scales;
    const std::size_t *starts; // of every block's part of `indices`; blocks + 1 entries
    T feature_scale;           // of cosines and sines; of no use to plain projections

    std::size_t count() const { return starts[blocks]; }
};

// X M for a dense matrix M with `size` columns.
template <class T> struct ProductPlan {
    std::size_t columns, size;
    const T *matrix;
};

// Zᵀ W (Z V − offsets), and below it the sums over rows of what Zᵀ is multiplied by, for rows Z.
template <class T> struct NormalPlan {
    std::size_t columns, size; // of Z, of V
    std::size_t sides;         // V has as many columns for each of so many weights of a row
    const T *matrix;           // V
    const double *offsets;     // one for every column of V
    const double *weights;     // rows x sides
    double *out;               // (columns + 1) x size
};

// Squared norms of rows and, unless `dots` is null, their inner products with a direction.
struct MomentsPlan {
    std::size_t columns;
    const double *direction;
    double *squares, *dots; // one for every row
};

// exp(-gamma max(left_i + right_j - 2 products_ij, 0)).
struct GaussianPlan {
    std::size_t columns;
    double gamma;
    const double *left, *right;
};

constexpr std::size_t kLargestRadix = 5;

// One step of a Fourier transform: `radix` numbers, `span` apart, are transformed together. Complex
// numbers of tables are pairs.
template <class T> struct FftStep {
    std::size_t radix, span;
    const T *roots;    // of unity, `radix` of them; only if the radix is odd
    const T *twiddles; // radix - 1 for each of the places 1 .. span - 1
};

// The Fourier transform of `length` real numbers, by one of `count` complex numbers.
template <class T> struct FftPlan {
    std::size_t length;
    std::size_t count; // length / 2, or the length itself if it is odd
    const FftStep<T> *steps;
    std::size_t step_count;
    const std::int32_t *positions; // where the steps leave every frequency
    const T *roots;                // of unity of order `length`, count / 2 + 1; if that is even
};

// A block of features: the circular convolution of `degree` CountSketches of length `size`.
template <class T> struct TensorBlock {
    std::size_t degree, size, offset;
    const FftPlan<T> *transform; // null for degree 1, which needs none
    const std::uint64_t *keys;   // of the CountSketches' hashes
    const std::int32_t *tables;  // `columns` targets for every CountSketch; null: they are hashed
    const T *shifts;             // CountSketches of a fixed direction, or null
};

template <class T> struct TensorPlan {
    std::size_t columns;
    const TensorBlock<T> *blocks;
    std::size_t block_count;
    std::size_t longest; // complex numbers that hold any block and any of its transforms
    bool preserve_norms;
};

// One application of S: registers[target][:size] = S(registers[left] x registers[right]).
struct PairStep {
    std::int32_t left, right, target, size;
};

// One block of features: `size` coordinates of a register from `start` on, written at column
// `offset` of the output once `after` steps are done. Blocks of different degrees take different
// rows of S, or their errors would add up instead of averaging out.
struct OutputBlock {
    std::int32_t source, start, size, offset, after;
};

enum class Leaf { identity, srht, scatter };

constexpr std::size_t kMaxRegisters = 64;

// Algorithm 1 and its relatives: a leaf, then a straight-line program of pair products.
template <class T> struct ChainPlan {
    std::size_t columns;
    Leaf leaf;
    SrhtPlan<T> srht;        // for Leaf::srht
    ScatterPlan<T> buckets;  // for Leaf::scatter
    std::size_t leaf_length; // power of two
    const T *leaf_shift;     // `leaf_length` entries or null: the leaf of a fixed direction
    PairPlan<T> pair;
    const PairStep *steps;
    std::size_t step_count;
    const OutputBlock *outputs; // in the order of `after`
    std::size_t output_count;
    std::size_t register_count;
    bool preserve_norms;
};

// What changes from row to row: x -> row_scale * x + row_shift * direction, block scales.
template <class T> struct ChainRows {
    Rows<const T> input; // of no use where rows are sparse
    const T *row_scale;
    const T *row_shift;         // or null
    const double *block_scales; // rows x output_count
    Rows<T> output;
};

} // namespace powersketch
