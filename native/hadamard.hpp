// Fast Walsh-Hadamard transforms. Levels always run from stride 1 upwards, so every layout and
// instruction set forms the same sums in the same order: identical bits.
// Included once per instruction set (see routines.hpp).

// As many numbers as the vector registers hold, with room for the sums: AVX-512 and AArch64 have 32
// registers, the others 16.
#if PS_VECTOR_BYTES == 64 || defined(__aarch64__)
constexpr std::size_t kRadix = 16;
#else
constexpr std::size_t kRadix = 8;
#endif
constexpr std::size_t kBlockBytes = 16384; // one block of low levels stays in half of L1

// All log2(radix) levels between `radix` elements held in registers.
template <std::size_t radix, class E> PS_INLINE void transform_registers(E (&v)[radix]) {
#pragma GCC unroll 4
    for (std::size_t h = 1; h < radix; h *= 2) {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < radix; ++i) {
            if (!(i & h)) {
                const E a = v[i], b = v[i + h];
                v[i] = a + b;
                v[i + h] = a - b;
            }
        }
    }
}

// The levels with strides h, 2h, .. (radix / 2) h over n elements.
template <std::size_t radix, class E>
inline void transform_levels(E *data, std::size_t n, std::size_t h) {
    for (std::size_t base = 0; base < n; base += radix * h) {
        for (std::size_t i = base; i < base + h; ++i) {
            E v[radix];
#pragma GCC unroll 16
            for (std::size_t r = 0; r < radix; ++r)
                v[r] = data[i + r * h];
            transform_registers<radix>(v);
#pragma GCC unroll 16
            for (std::size_t r = 0; r < radix; ++r)
                data[i + r * h] = v[r];
        }
    }
}

// The levels with strides h .. n / 2, by as few passes as possible.
template <class E> inline void transform_span(E *data, std::size_t n, std::size_t h) {
    while (h * kRadix <= n) {
        transform_levels<kRadix>(data, n, h);
        h *= kRadix;
    }
    if (kRadix == 16 && h * 8 <= n) {
        transform_levels<8>(data, n, h);
        h *= 8;
    }
    if (h * 4 <= n) {
        transform_levels<4>(data, n, h);
        h *= 4;
    }
    if (h * 2 <= n)
        transform_levels<2>(data, n, h);
}

// n elements (a power of two); the levels below stride h are done already.
template <class E> inline void transform_from(E *data, std::size_t n, std::size_t h) {
    constexpr std::size_t block = kBlockBytes / sizeof(E);
    if (n > block && h < block) {
        for (std::size_t base = 0; base < n; base += block)
            transform_span(data + base, block, h);
        h = block;
    }
    transform_span(data, n, h);
}

// One row, contiguous: W * W numbers at a time, the low levels of a transposed tile.
template <class T> PS_INLINE void transform_tile(Vec<T> (&v)[kLanes<T>]) {
    transpose<T>(v);
    transform_registers<kLanes<T>>(v);
    transpose<T>(v);
    transform_registers<kLanes<T>>(v);
}

// Too short for a tile: plain loops in the same order.
template <class T> inline void transform_short_row(T *x, std::size_t n) {
    for (std::size_t h = 1; h < n; h *= 2)
        transform_levels<2>(x, n, h);
}

// x[0..n) = H (x * signs * scale) of the source row, which has `columns` <= n entries; `signs`
// may be null. Source and target may be the same row.
template <class T>
inline void transform_row(const T *source, std::size_t columns, const T *signs, T scale, T *x,
                          std::size_t n) {
    constexpr std::size_t W = kLanes<T>, tile = W * W;
    const std::size_t whole = n >= tile ? columns / tile * tile : 0;
    for (std::size_t j = 0; j < whole; j += tile) {
        Vec<T> v[W];
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r) {
            v[r] = load_unaligned(source + j + r * W) * broadcast(scale);
            if (signs)
                v[r] *= load_unaligned(signs + j + r * W);
        }
        transform_tile<T>(v);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < W; ++r)
            store_unaligned(x + j + r * W, v[r]);
    }
    for (std::size_t j = whole; j < n; ++j)
        x[j] = j < columns ? source[j] * scale * (signs ? signs[j] : T(1)) : T(0);
    if (n < tile)
        return transform_short_row(x, n);
    // Tiles wholly made of padding are zero and stay zero.
    for (std::size_t j = whole; j < columns; j += tile) {
        Vec<T> v[W];
        for (std::size_t r = 0; r < W; ++r)
            v[r] = load_unaligned(x + j + r * W);
        transform_tile<T>(v);
        for (std::size_t r = 0; r < W; ++r)
            store_unaligned(x + j + r * W, v[r]);
    }
    transform_from(reinterpret_cast<Vec<T> *>(x), n / W, W);
}

// target = H D source, both of n elements.
template <class T>
inline void transform_signed(const T *source, const T *signs, T *target, std::size_t n) {
    transform_row(source, n, signs, T(1), target, n);
}
template <class T>
inline void transform_signed(const Vec<T> *source, const T *signs, Vec<T> *target, std::size_t n) {
    if (n < kRadix) {
        for (std::size_t j = 0; j < n; ++j)
            target[j] = source[j] * broadcast(signs[j]);
        return transform_from(target, n, 1);
    }
    for (std::size_t j = 0; j < n; j += kRadix) {
        Vec<T> v[kRadix];
#pragma GCC unroll 16
        for (std::size_t c = 0; c < kRadix; ++c)
            v[c] = source[j + c] * broadcast(signs[j + c]);
        transform_registers<kRadix>(v);
#pragma GCC unroll 16
        for (std::size_t c = 0; c < kRadix; ++c)
            target[j + c] = v[c];
    }
    transform_from(target, n, kRadix);
}
