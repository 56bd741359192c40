// Fixed-width vectors in compiler extensions, and the W x W transpose between rows and lanes.
// Included once per instruction set, inside that set's own namespace (see kernels.hpp).

// Everything that works on vectors in registers must be inlined, or the registers go to memory.
#define PS_INLINE inline __attribute__((always_inline))

template <class T> struct VectorOf {
    typedef T Aligned __attribute__((vector_size(PS_VECTOR_BYTES)));
    typedef T Unaligned
        __attribute__((vector_size(PS_VECTOR_BYTES), aligned(alignof(T))));
    static constexpr std::size_t lanes = PS_VECTOR_BYTES / sizeof(T);
};
template <class T> using Vec = typename VectorOf<T>::Aligned;
template <class T> constexpr std::size_t kLanes = VectorOf<T>::lanes;

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

// v[r] holds row r; afterwards v[c] holds column c. Only one-instruction shuffles on x86: first
// inside 16-byte lanes, then exchanging whole lanes.
template <class T> PS_INLINE void transpose(Vec<T> (&v)[kLanes<T>]) {
    if constexpr (sizeof(T) == 4) {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kLanes<T>; i += 2)
            shuffle_pair<Interleave, 4, T>(v[i], v[i + 1]);
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kLanes<T>; i += 4) {
            const Vec<T> second = v[i + 1];
            v[i + 1] = v[i + 2];
            v[i + 2] = second;
            shuffle_pair<ExchangeBlocks, 2, T>(v[i], v[i + 1]);
            shuffle_pair<ExchangeBlocks, 2, T>(v[i + 2], v[i + 3]);
        }
        exchange_blocks<4, T>(v);
    } else {
        exchange_blocks<1, T>(v);
    }
}
