// Rows in and out of the lanes of vectors, one row to a lane, and the scratch memory between.
// Included once per instruction set (see routines.hpp).

constexpr std::size_t kLaneLength = 4096; // longer rows, W at a time, would not fit L2

inline bool fits_lanes(std::size_t n) { return n <= kLaneLength; }
template <class T> inline bool worth_lanes(std::size_t rows) { return 2 * rows >= kLanes<T>; }

// Whole cache lines, and one more: pieces of scratch whose lengths are powers of two would
// otherwise compete for the same sets of a cache.
inline std::size_t piece_bytes(std::size_t bytes) { return (bytes + 127) / 64 * 64; }

// Hands out aligned pieces of a thread's scratch memory.
struct Arena {
    char *next;
    template <class E> E *take(std::size_t count) {
        E *piece = reinterpret_cast<E *>(next);
        next += piece_bytes(count * sizeof(E));
        return piece;
    }
};

// What a group of rows is computed in: numbers of one row (E = T), or vectors of W rows.
template <class E> struct In {
    using Element = E;
};

// Calls body(In<E>, begin, count) for all groups of rows: W rows in lanes, the last group maybe
// fewer, or rows one by one where `lanes` is false or few are left.
template <class T, class Body> inline void for_groups(bool lanes, Share share, const Body &body) {
    for (std::size_t i = share.begin; i < share.end;) {
        const std::size_t left = share.end - i < kLanes<T> ? share.end - i : kLanes<T>;
        if (lanes && worth_lanes<T>(left)) {
            body(In<Vec<T>>{}, i, left);
            i += left;
        } else {
            body(In<T>{}, i, std::size_t(1));
            ++i;
        }
    }
}

// Pointers to W rows; rows beyond `count` repeat the last one, and are stored into `spill`.
template <class T> struct InputGroup {
    const T *rows[kLanes<T>];
    InputGroup(Rows<const T> input, std::size_t begin, std::size_t count) {
        for (std::size_t r = 0; r < kLanes<T>; ++r)
            rows[r] = input.row(begin + (r < count ? r : count - 1));
    }
};
template <class T> struct OutputGroup {
    T *rows[kLanes<T>];
    OutputGroup(Rows<T> output, std::size_t offset, std::size_t begin, std::size_t count,
                T *spill) {
        for (std::size_t r = 0; r < kLanes<T>; ++r)
            rows[r] = r < count ? output.row(begin + r) + offset : spill;
    }
};

// The numbers of a group, one for each of its rows.
inline float row_of(float v, std::size_t) { return v; }
inline double row_of(double v, std::size_t) { return v; }
template <class V> inline auto row_of(V v, std::size_t r) -> decltype(v[r] + 0) { return v[r]; }

template <class E, class T> inline E from_rows(const T (&value)[kRowsIn<E>]) {
    if constexpr (kRowsIn<E> == 1) {
        return value[0];
    } else {
        E v{};
        for (std::size_t r = 0; r < kRowsIn<E>; ++r)
            v[r] = value[r];
        return v;
    }
}
template <class E, class T>
inline E from_rows(const T *values, std::size_t begin, std::size_t count) {
    T group[kRowsIn<E>];
    for (std::size_t r = 0; r < kRowsIn<E>; ++r)
        group[r] = values[begin + (r < count ? r : count - 1)];
    return from_rows<E>(group);
}

// Column j of W rows, lane = row.
template <class T> inline Vec<T> gather_column(const T *const *rows, std::size_t j) {
    Vec<T> v{};
    for (std::size_t r = 0; r < kLanes<T>; ++r)
        v[r] = rows[r][j];
    return v;
}

// W rows at once, lane = row: `rows[r]` is row r; target[j] receives weigh(v, j), v being
// coordinate j of all W rows, and zero from `columns` on. With `transform`, the levels below W are
// done too.
template <bool transform, class T, class Weigh>
inline void load_lanes(const T *const *rows, std::size_t columns, const Weigh &weigh,
                       Vec<T> *target, std::size_t n) {
    constexpr std::size_t W = kLanes<T>;
    std::size_t j = 0;
    for (; j + W <= columns; j += W) {
        Vec<T> v[W];
        load_columns(rows, j, v);
#pragma GCC unroll 16
        for (std::size_t c = 0; c < W; ++c)
            v[c] = weigh(v[c], j + c);
        if (transform)
            transform_registers<W>(v);
#pragma GCC unroll 16
        for (std::size_t c = 0; c < W; ++c)
            target[j + c] = v[c];
    }
    const std::size_t tail = j;
    for (; j < n; ++j)
        target[j] = j < columns ? weigh(gather_column(rows, j), j) : Vec<T>{};
    if (transform)
        for (std::size_t base = tail; base < n; base += W)
            transform_span(target + base, n - base < W ? n - base : W, 1);
}

// What load_lanes does to the coordinates: nothing, signs, a scale per row, or both.
template <class T> struct Unchanged {
    PS_INLINE Vec<T> operator()(Vec<T> v, std::size_t) const { return v; }
};
template <class T> struct Signed {
    const T *signs;
    PS_INLINE Vec<T> operator()(Vec<T> v, std::size_t j) const { return v * broadcast(signs[j]); }
};
template <class T> struct ScaledRows {
    Vec<T> scale;
    PS_INLINE Vec<T> operator()(Vec<T> v, std::size_t) const { return v * scale; }
};
template <class T> struct ScaledSigned {
    Vec<T> scale;
    const T *signs;
    PS_INLINE Vec<T> operator()(Vec<T> v, std::size_t j) const {
        return v * scale * broadcast(signs[j]);
    }
};

// The inverse of load_lanes without transform: column k of W rows becomes value(k), for `size`
// columns.
template <class T, class Value>
inline void store_lanes(const Value &value, T *const *rows, std::size_t size) {
    constexpr std::size_t W = kLanes<T>;
    std::size_t k = 0;
    for (; k + W <= size; k += W) {
        Vec<T> v[W];
#pragma GCC unroll 16
        for (std::size_t c = 0; c < W; ++c)
            v[c] = value(k + c);
        store_columns(v, rows, k);
    }
    for (; k < size; ++k) {
        const Vec<T> v = value(k);
        for (std::size_t r = 0; r < W; ++r)
            rows[r][k] = v[r];
    }
}

// Columns offset .. offset + size of a group's rows become source[k] times the row's factor.
template <class T>
inline void store_scaled(const T *source, const T (&factor)[1], std::size_t size, Rows<T> output,
                         std::size_t offset, std::size_t begin, std::size_t, T *) {
    T *target = output.row(begin) + offset;
    for (std::size_t k = 0; k < size; ++k)
        target[k] = source[k] * factor[0];
}
template <class T>
inline void store_scaled(const Vec<T> *source, const T (&factor)[kLanes<T>], std::size_t size,
                         Rows<T> output, std::size_t offset, std::size_t begin, std::size_t count,
                         T *spill) {
    const OutputGroup<T> to(output, offset, begin, count, spill);
    const Vec<T> scale = from_rows<Vec<T>>(factor);
    store_lanes<T>([=](std::size_t k) { return source[k] * scale; }, to.rows, size);
}
