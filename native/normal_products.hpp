// Zᵀ W (Z V − offsets) for a block of rows, which are read once: both products with a tile of rows
// are taken while it is in cache. A line is 64 bytes on every machine. Sums over columns are one
// for every place in a line, added as a tree in double precision; sums over rows are those of
// tiles, added in their order.
// Included once per instruction set (see routines.hpp).

constexpr std::size_t kLineBytes = 64;
template <class T> constexpr std::size_t kLine = kLineBytes / sizeof(T);

// Sums held in registers at a time, rows x columns of V or lines x columns of V.
#if PS_VECTOR_BYTES == 64
constexpr std::size_t kNormalRows = 4, kNormalColumns = 5; // 32 vector registers
#elif defined(__aarch64__)
constexpr std::size_t kNormalRows = 2, kNormalColumns = 3; // 32 registers, and 4 to a line
#elif PS_VECTOR_BYTES == 32
constexpr std::size_t kNormalRows = 2, kNormalColumns = 3;
#else
constexpr std::size_t kNormalRows = 1, kNormalColumns = 3;
#endif
constexpr std::size_t kNormalTile = 32;  // rows whose sums of Zᵀ U stay in registers
constexpr std::size_t kNormalDepth = 16; // lines of V that stay in L1

template <class T> struct Line {
    static constexpr std::size_t count = kLineBytes / PS_VECTOR_BYTES;
    Vec<T> parts[count];

    PS_INLINE void clear() {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < count; ++c)
            parts[c] = Vec<T>{};
    }
    PS_INLINE void load(const T *p) {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < count; ++c)
            parts[c] = load_unaligned(p + c * kLanes<T>);
    }
    PS_INLINE void store(T *p) const {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < count; ++c)
            store_unaligned(p + c * kLanes<T>, parts[c]);
    }
    PS_INLINE void add(const Line &a) {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < count; ++c)
            parts[c] += a.parts[c];
    }
    PS_INLINE void add_product(const Line &a, const Line &b) {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < count; ++c)
            parts[c] += a.parts[c] * b.parts[c];
    }
    PS_INLINE void add_product(const Line &a, T b) {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < count; ++c)
            parts[c] += a.parts[c] * broadcast(b);
    }
};

// The sum of a line, its halves added to each other until one number is left.
template <class T> inline double line_total(const T *line) {
    double sums[kLine<T>];
    for (std::size_t c = 0; c < kLine<T>; ++c)
        sums[c] = double(line[c]);
    for (std::size_t half = kLine<T> / 2; half; half /= 2)
        for (std::size_t c = 0; c < half; ++c)
            sums[c] += sums[c + half];
    return sums[0];
}

inline std::size_t in_wholes(std::size_t n, std::size_t unit) {
    return (n + unit - 1) / unit * unit;
}

// Where a call keeps what it works on. The numbers of every column of V stand together, in whole
// lines, and there are whole groups of columns.
template <class T> struct NormalWorkspace {
    std::size_t width, stride; // columns of V, and numbers of each
    T *right;                  // V, transposed and padded with zeros
    T *sums;                   // of Zᵀ U, the same way
    T *fitted;                 // lines whose totals are those of Z V, for a tile
    T *tails;                  // the last columns of a tile, padded with zeros
    T *values;                 // U of a tile

    explicit NormalWorkspace(const NormalPlan<T> &plan)
        : width(in_wholes(plan.size, kNormalColumns)),
          // An odd number of lines: powers of two would compete for the same sets of a cache.
          stride((in_wholes(plan.columns, kLine<T>) / kLine<T> | 1) * kLine<T>) {}
    std::size_t bytes() const {
        return 2 * piece_bytes(width * stride * sizeof(T)) +
               piece_bytes(kNormalTile * width * kLineBytes) +
               piece_bytes(kNormalTile * kLineBytes) + piece_bytes(kNormalTile * width * sizeof(T));
    }
    void take(Arena arena) {
        right = arena.take<T>(width * stride);
        sums = arena.take<T>(width * stride);
        fitted = arena.take<T>(kNormalTile * width * kLine<T>);
        tails = arena.take<T>(kNormalTile * kLine<T>);
        values = arena.take<T>(kNormalTile * width);
    }
};

template <class T> std::size_t normal_workspace(const NormalPlan<T> &plan) {
    return NormalWorkspace<T>(plan).bytes();
}

// `depth` lines of a few rows times those of a few columns of V, added to `fitted`.
template <class T>
PS_INLINE void add_fitted(const T *const (&rows)[kNormalRows], std::size_t depth, const T *right,
                          std::size_t stride, T *fitted, std::size_t width) {
    Line<T> sum[kNormalRows][kNormalColumns];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kNormalRows; ++r)
#pragma GCC unroll 5
        for (std::size_t k = 0; k < kNormalColumns; ++k)
            sum[r][k].load(fitted + (r * width + k) * kLine<T>);
    for (std::size_t l = 0; l < depth; ++l) {
        Line<T> v[kNormalColumns];
#pragma GCC unroll 5
        for (std::size_t k = 0; k < kNormalColumns; ++k)
            v[k].load(right + k * stride + l * kLine<T>);
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kNormalRows; ++r) {
            Line<T> x;
            x.load(rows[r] + l * kLine<T>);
#pragma GCC unroll 5
            for (std::size_t k = 0; k < kNormalColumns; ++k)
                sum[r][k].add_product(v[k], x);
        }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kNormalRows; ++r)
#pragma GCC unroll 5
        for (std::size_t k = 0; k < kNormalColumns; ++k)
            sum[r][k].store(fitted + (r * width + k) * kLine<T>);
}

// Lines first .. first + depth of all rows of a tile, times V.
template <class T>
inline void fit_lines(Rows<const T> tile, std::size_t count, std::size_t first, std::size_t depth,
                      const NormalWorkspace<T> &space) {
    for (std::size_t i = 0; i < count; i += kNormalRows) {
        const T *rows[kNormalRows];
        // Rows beyond the last repeat it, and nobody reads what becomes of them.
        for (std::size_t r = 0; r < kNormalRows; ++r)
            rows[r] = tile.row(i + r < count ? i + r : count - 1);
        for (std::size_t k = 0; k < space.width; k += kNormalColumns)
            add_fitted<T>(rows, depth, space.right + k * space.stride + first * kLine<T>,
                          space.stride, space.fitted + (i * space.width + k) * kLine<T>,
                          space.width);
    }
}

// `lines` lines of Zᵀ U for a few columns of U, added to `sums`.
template <std::size_t lines, class T>
PS_INLINE void add_lines(Rows<const T> tile, std::size_t count, const T *values, std::size_t width,
                         T *sums, std::size_t stride) {
    Line<T> sum[lines][kNormalColumns];
#pragma GCC unroll 4
    for (std::size_t l = 0; l < lines; ++l)
#pragma GCC unroll 5
        for (std::size_t k = 0; k < kNormalColumns; ++k)
            sum[l][k].clear();
    for (std::size_t r = 0; r < count; ++r)
#pragma GCC unroll 4
        for (std::size_t l = 0; l < lines; ++l) {
            Line<T> x;
            x.load(tile.row(r) + l * kLine<T>);
#pragma GCC unroll 5
            for (std::size_t k = 0; k < kNormalColumns; ++k)
                sum[l][k].add_product(x, values[r * width + k]);
        }
#pragma GCC unroll 4
    for (std::size_t l = 0; l < lines; ++l)
#pragma GCC unroll 5
        for (std::size_t k = 0; k < kNormalColumns; ++k) {
            T *place = sums + k * stride + l * kLine<T>;
            Line<T> total;
            total.load(place);
            total.add(sum[l][k]);
            total.store(place);
        }
}

template <std::size_t lines, class T>
inline void add_all_columns(Rows<const T> tile, std::size_t count, std::size_t first,
                            const NormalWorkspace<T> &space) {
    for (std::size_t k = 0; k < space.width; k += kNormalColumns)
        add_lines<lines>(tile, count, space.values + k, space.width,
                         space.sums + k * space.stride + first * kLine<T>, space.stride);
}

// U = W (Z V − offsets) of a tile, rounded once, from the lines of Z V; their sums are added.
template <class T>
inline void weigh_tile(const NormalPlan<T> &plan, std::size_t begin, std::size_t count,
                       const NormalWorkspace<T> &space, double *totals) {
    const std::size_t width = space.width, columns = plan.size / plan.sides;
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t k = 0; k < width; ++k) {
            double value = 0;
            if (k < plan.size) {
                const double fitted = line_total(space.fitted + (r * width + k) * kLine<T>);
                value = plan.weights[(begin + r) * plan.sides + k / columns] *
                        (fitted - plan.offsets[k]);
                totals[k] += value;
            }
            space.values[r * width + k] = T(value);
        }
}

template <class T>
inline void normal_tile(const NormalPlan<T> &plan, Rows<const T> tile, std::size_t begin,
                        std::size_t count, const NormalWorkspace<T> &space, double *totals) {
    const std::size_t whole = plan.columns / kLine<T>, rest = plan.columns - whole * kLine<T>;
    for (std::size_t r = 0; r < count; ++r)
        for (std::size_t c = 0; c < kLine<T>; ++c)
            space.tails[r * kLine<T> + c] = c < rest ? tile.row(r)[whole * kLine<T> + c] : T(0);
    const Rows<const T> tail{space.tails, kLine<T>};
    for (std::size_t e = 0; e < kNormalTile * space.width * kLine<T>; ++e)
        space.fitted[e] = 0;
    for (std::size_t l = 0; l < whole; l += kNormalDepth)
        fit_lines(Rows<const T>{tile.data + l * kLine<T>, tile.stride}, count, l,
                  whole - l < kNormalDepth ? whole - l : kNormalDepth, space);
    if (rest)
        fit_lines(tail, count, whole, 1, space);
    weigh_tile(plan, begin, count, space, totals);
    std::size_t l = 0;
    for (; l + kNormalRows <= whole; l += kNormalRows)
        add_all_columns<kNormalRows>(Rows<const T>{tile.data + l * kLine<T>, tile.stride}, count, l,
                                     space);
    for (; l < whole; ++l)
        add_all_columns<1>(Rows<const T>{tile.data + l * kLine<T>, tile.stride}, count, l, space);
    if (rest)
        add_all_columns<1>(tail, count, whole, space);
}

template <class T> void normal_rows(const NormalPlan<T> &plan, Rows<const T> input, Share share) {
    NormalWorkspace<T> space(plan);
    space.take({share.workspace});
    double *totals = plan.out + plan.columns * plan.size;
    for (std::size_t e = 0; e < space.width * space.stride; ++e)
        space.right[e] = space.sums[e] = 0;
    for (std::size_t j = 0; j < plan.columns; ++j)
        for (std::size_t k = 0; k < plan.size; ++k)
            space.right[k * space.stride + j] = plan.matrix[j * plan.size + k];
    for (std::size_t k = 0; k < plan.size; ++k)
        totals[k] = 0;
    for (std::size_t i = share.begin; i < share.end; i += kNormalTile)
        normal_tile(plan, Rows<const T>{input.row(i), input.stride}, i,
                    share.end - i < kNormalTile ? share.end - i : kNormalTile, space, totals);
    for (std::size_t j = 0; j < plan.columns; ++j)
        for (std::size_t k = 0; k < plan.size; ++k)
            plan.out[j * plan.size + k] = double(space.sums[k * space.stride + j]);
}
