// Products of rows with a dense matrix. Every sum runs over the coordinates in order, whatever the
// batch and the vectors, and starts from zero.
// Included once per instruction set (see routines.hpp).

// Sums held in registers at a time, rows x vectors; the rest is for a row of the matrix.
#if PS_VECTOR_BYTES == 64 || defined(__aarch64__)
constexpr std::size_t kTileRows = 8, kTileVectors = 3; // 32 vector registers
#else
constexpr std::size_t kTileRows = 4, kTileVectors = 2;
#endif
constexpr std::size_t kTileDepth = 128; // coordinates whose part of the matrix stays in L1

template <class E, class T> PS_INLINE E load_as(const T *p) {
    if constexpr (kRowsIn<E> == 1)
        return *p;
    else
        return load_unaligned(p);
}
template <class T> PS_INLINE void store_as(T *p, T value) { *p = value; }
template <class T> PS_INLINE void store_as(T *p, Vec<T> value) { store_unaligned(p, value); }

// A tile of kTileRows rows times `depth` rows of the matrix, which stand together in `panel`, is
// added to the output, or written there if these are the first.
template <class E, std::size_t width, class T>
PS_INLINE void add_tile(Rows<const T> x, std::size_t depth, const T *panel, Rows<T> out,
                        bool first) {
    constexpr std::size_t W = kRowsIn<E>;
    E sum[kTileRows][width];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
        for (std::size_t c = 0; c < width; ++c)
            sum[r][c] = first ? E{} : load_as<E>(out.row(r) + c * W);
    for (std::size_t j = 0; j < depth; ++j, panel += width * W) {
        E m[width];
#pragma GCC unroll 4
        for (std::size_t c = 0; c < width; ++c)
            m[c] = load_as<E>(panel + c * W);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
            for (std::size_t c = 0; c < width; ++c)
                sum[r][c] += m[c] * x.row(r)[j];
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
        for (std::size_t c = 0; c < width; ++c)
            store_as<T>(out.row(r) + c * W, sum[r][c]);
}

template <class T> std::size_t product_workspace(const ProductPlan<T> &) {
    return piece_bytes(kTileDepth * kTileVectors * PS_VECTOR_BYTES);
}

// Whole tiles of rows times the columns of the matrix from k on, as many as `width` elements hold.
template <class E, std::size_t width, class T>
inline void add_panel(const ProductPlan<T> &plan, Rows<const T> input, Rows<T> output, Share share,
                      std::size_t j, std::size_t k) {
    constexpr std::size_t columns = width * kRowsIn<E>;
    const std::size_t depth = plan.columns - j < kTileDepth ? plan.columns - j : kTileDepth;
    T *panel = reinterpret_cast<T *>(share.workspace);
    for (std::size_t d = 0; d < depth; ++d)
        for (std::size_t c = 0; c < columns; ++c)
            panel[d * columns + c] = plan.matrix[(j + d) * plan.size + k + c];
    for (std::size_t i = share.begin; i < share.end; i += kTileRows)
        add_tile<E, width>(Rows<const T>{input.row(i) + j, input.stride}, depth, panel,
                           Rows<T>{output.row(i) + k, output.stride}, j == 0);
}

template <class T>
inline void product_tiles(const ProductPlan<T> &plan, Rows<const T> input, Rows<T> output,
                          Share share) {
    constexpr std::size_t W = kLanes<T>;
    for (std::size_t j = 0; j < plan.columns; j += kTileDepth) {
        std::size_t k = 0;
        for (; k + kTileVectors * W <= plan.size; k += kTileVectors * W)
            add_panel<Vec<T>, kTileVectors>(plan, input, output, share, j, k);
        for (; k + W <= plan.size; k += W)
            add_panel<Vec<T>, 1>(plan, input, output, share, j, k);
        for (; k < plan.size; ++k)
            add_panel<T, 1>(plan, input, output, share, j, k);
    }
}

// target[k] += value * matrix_row[k].
template <class T>
inline void add_multiple(T *target, T value, const T *matrix_row, std::size_t size) {
    constexpr std::size_t W = kLanes<T>;
    std::size_t k = 0;
    for (; k + W <= size; k += W)
        store_unaligned(target + k, load_unaligned(target + k) +
                                        broadcast(value) * load_unaligned(matrix_row + k));
    for (; k < size; ++k)
        target[k] += value * matrix_row[k];
}

template <class T>
inline void clear_rows(Rows<T> output, std::size_t size, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        for (std::size_t k = 0; k < size; ++k)
            output.row(i)[k] = 0;
}

// Whole tiles of rows, then those that are left; all of these share one reading of the matrix.
template <class T>
void product_rows(const ProductPlan<T> &plan, Rows<const T> input, Rows<T> output, Share share) {
    const std::size_t rest = share.end - (share.end - share.begin) % kTileRows;
    if (plan.columns && share.begin < rest)
        product_tiles(plan, input, output, {share.begin, rest, share.workspace});
    clear_rows(output, plan.size, plan.columns ? rest : share.begin, share.end);
    for (std::size_t j = 0; j < plan.columns; ++j)
        for (std::size_t i = rest; i < share.end; ++i)
            add_multiple(output.row(i), input.row(i)[j], plan.matrix + j * plan.size, plan.size);
}

template <class T, class I>
void product_sparse_rows(const ProductPlan<T> &plan, SparseRows<T, I> input, Rows<T> output,
                         Share share) {
    clear_rows(output, plan.size, share.begin, share.end);
    for (std::size_t i = share.begin; i < share.end; ++i)
        for (std::int64_t e = input.indptr[i]; e < input.indptr[i + 1]; ++e)
            add_multiple(output.row(i), input.values[e],
                         plan.matrix + std::size_t(input.columns[e]) * plan.size, plan.size);
}
