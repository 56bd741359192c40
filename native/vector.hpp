// Fixed-width vectors in compiler extensions, and the W x W transpose between rows and lanes.
// Included once per instruction set, inside that set's own namespace (see routines.hpp).

// Everything that works on vectors in registers must be inlined, or the registers go to memory.
#define PS_INLINE inline __attribute__((always_inline))

template <class T> struct VectorOf {
    typedef T Aligned __attribute__((vector_size(PS_VECTOR_BYTES)));
    typedef T Unaligned __attribute__((vector_size(PS_VECTOR_BYTES), aligned(alignof(T))));
    static constexpr std::size_t lanes = PS_VECTOR_BYTES / sizeof(T);
};
template <class T> using Vec = typename VectorOf<T>::Aligned;
template <class T> constexpr std::size_t kLanes = VectorOf<T>::lanes;

// How many rows an element stands for: a number for one, a vector for one in every lane.
template <class E> constexpr std::size_t kRowsIn = 1;
template <> constexpr std::size_t kRowsIn<Vec<float>> = kLanes<float>;
template <> constexpr std::size_t kRowsIn<Vec<double>> = kLanes<double>;

// The same bits as unsigned integers, for signs.
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T> using BitVec = Vec<Bits<T>>;

// The caller's arrays carry no alignment promise beyond their element type.
template <class T> PS_INLINE Vec<T> load_unaligned(const T *p) {
    return *reinterpret_cast<const typename VectorOf<T>::Unaligned *>(p);
}
template <class T> PS_INLINE void store_unaligned(T *p, Vec<T> v) {
    *reinterpret_cast<typename VectorOf<T>::Unaligned *>(p) = v;
}
// value - 0 is value to the compiler, negative zero included; value + 0 would cost an addition.
template <class T> PS_INLINE Vec<T> broadcast(T value) { return value - Vec<T>{}; }

// Index rules of the two-operand shuffles; operand b's elements count on from `width`.
// Inside 16-byte lanes: interleave the low or the high halves.
template <std::size_t width, std::size_t lane, bool high> struct Interleave {
    static constexpr int at(std::size_t c) {
        const std::size_t base = c / lane * lane, i = c % lane;
        return int(base + (high ? lane / 2 : 0) + i / 2 + (i % 2 ? width : 0));
    }
};
// Exchange blocks of h elements: the step of the recursive block transpose.
template <std::size_t width, std::size_t h, bool high> struct ExchangeBlocks {
    static constexpr int at(std::size_t c) {
        if (high)
            return int(c & h ? width + c : c + h);
        return int(c & h ? width + c - h : c);
    }
};

template <class Rule, class V, std::size_t... c>
PS_INLINE V shuffle(V a, V b, std::index_sequence<c...>) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, Rule::at(c)...);
#else
    using Index = std::conditional_t<sizeof(a[0]) == 4, std::int32_t, std::int64_t>;
    typedef Index Mask __attribute__((vector_size(PS_VECTOR_BYTES)));
    return __builtin_shuffle(a, b, Mask{Rule::at(c)...});
#endif
}

template <template <std::size_t, std::size_t, bool> class Rule, std::size_t h, class T>
PS_INLINE void shuffle_pair(Vec<T> &a, Vec<T> &b) {
    constexpr std::size_t width = kLanes<T>;
    const auto all = std::make_index_sequence<width>{};
    const Vec<T> low = shuffle<Rule<width, h, false>>(a, b, all);
    b = shuffle<Rule<width, h, true>>(a, b, all);
    a = low;
}

template <std::size_t h, class T> PS_INLINE void exchange_blocks(Vec<T> (&v)[kLanes<T>]) {
    if constexpr (h < kLanes<T>) {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kLanes<T>; ++i)
            if (!(i & h))
                shuffle_pair<ExchangeBlocks, h, T>(v[i], v[i + h]);
        exchange_blocks<2 * h, T>(v);
    }
}

// The L x L transpose inside every 16-byte lane of L consecutive vectors, by one-instruction
// shuffles on x86.
template <class T> constexpr std::size_t kChunk = 16 / sizeof(T);

template <class T> PS_INLINE void transpose_in_lanes(Vec<T> *v) {
    if constexpr (sizeof(T) == 4) {
        shuffle_pair<Interleave, 4, T>(v[0], v[1]);
        shuffle_pair<Interleave, 4, T>(v[2], v[3]);
        const Vec<T> second = v[1];
        v[1] = v[2];
        v[2] = second;
        shuffle_pair<ExchangeBlocks, 2, T>(v[0], v[1]);
        shuffle_pair<ExchangeBlocks, 2, T>(v[2], v[3]);
    } else {
        shuffle_pair<ExchangeBlocks, 1, T>(v[0], v[1]);
    }
}

// v[r] holds row r; afterwards v[c] holds column c.
template <class T> PS_INLINE void transpose(Vec<T> (&v)[kLanes<T>]) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kLanes<T>; i += kChunk<T>)
        transpose_in_lanes<T>(v + i);
    exchange_blocks<kChunk<T>, T>(v);
}

#if defined(__clang__) || __GNUC__ >= 12
// From memory to lanes whole 16-byte chunks are loaded one by one, which saves shuffles:
// v[c * L + i] is made of chunk c of the rows i, L + i, 2 L + i, ...
template <class T> struct ChunkOf {
    typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T))));
};
template <class T> using Chunk = typename ChunkOf<T>::Unaligned;

template <class T> PS_INLINE Chunk<T> chunk_at(const T *p) {
    return *reinterpret_cast<const Chunk<T> *>(p);
}
template <class V, class H, std::size_t... c>
PS_INLINE V join(H low, H high, std::index_sequence<c...>) {
    return __builtin_shufflevector(low, high, c...);
}
template <class T>
PS_INLINE Vec<T> gather_chunks(const T *const *rows, std::size_t i, std::size_t j) {
    constexpr std::size_t L = kChunk<T>;
    if constexpr (PS_VECTOR_BYTES == 16) {
        return load_unaligned(rows[i] + j);
    } else if constexpr (PS_VECTOR_BYTES == 32) {
        return join<Vec<T>>(chunk_at(rows[i] + j), chunk_at(rows[L + i] + j),
                            std::make_index_sequence<2 * L>{});
    } else {
        typedef T Half __attribute__((vector_size(32)));
        const auto half = std::make_index_sequence<2 * L>{};
        const Half low = join<Half>(chunk_at(rows[i] + j), chunk_at(rows[L + i] + j), half);
        const Half high =
            join<Half>(chunk_at(rows[2 * L + i] + j), chunk_at(rows[3 * L + i] + j), half);
        return join<Vec<T>>(low, high, std::make_index_sequence<4 * L>{});
    }
}

// v[c] = column j + c of W rows, lane = row.
template <class T>
PS_INLINE void load_columns(const T *const *rows, std::size_t j, Vec<T> (&v)[kLanes<T>]) {
    constexpr std::size_t L = kChunk<T>;
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kLanes<T>; c += L) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L; ++i)
            v[c + i] = gather_chunks(rows, i, j + c);
        transpose_in_lanes<T>(v + c);
    }
}

#else
template <class T>
PS_INLINE void load_columns(const T *const *rows, std::size_t j, Vec<T> (&v)[kLanes<T>]) {
    for (std::size_t r = 0; r < kLanes<T>; ++r)
        v[r] = load_unaligned(rows[r] + j);
    transpose<T>(v);
}
#endif

// The inverse of load_columns; stores are dearer than loads, so that whole vectors are stored.
template <class T>
PS_INLINE void store_columns(Vec<T> (&v)[kLanes<T>], T *const *rows, std::size_t j) {
    transpose<T>(v);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kLanes<T>; ++r)
        store_unaligned(rows[r] + j, v[r]);
}
