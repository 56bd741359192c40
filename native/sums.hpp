// Sums whose order is fixed, and with it every bit of them: eight partial sums, by position modulo
// eight, added as a tree, whatever the width of the vectors.
// Included once per instruction set (see routines.hpp).

template <class E> PS_INLINE E add_eight(const E (&sum)[8]) {
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// The sum of squares of value(k), k < n.
template <class E, class Value> PS_INLINE E sum_squares(std::size_t n, const Value &value) {
    E sum[8] = {};
    std::size_t k = 0;
    for (; k + 8 <= n; k += 8)
#pragma GCC unroll 8
        for (std::size_t c = 0; c < 8; ++c) {
            const E v = value(k + c);
            sum[c] += v * v;
        }
    for (std::size_t c = 0; k + c < n; ++c) {
        const E v = value(k + c);
        sum[c] += v * v;
    }
    return add_eight(sum);
}
template <class E> inline E sum_of_squares(const E *v, std::size_t n) {
    return sum_squares<E>(n, [=](std::size_t k) { return v[k]; });
}
// The same sum, taken while target[k] = product(k) is written.
template <class E, class Product>
PS_INLINE E write_and_sum_squares(E *target, std::size_t n, const Product &product) {
    return sum_squares<E>(n, [=](std::size_t k) { return target[k] = product(k); });
}

// The factors that turn the values of a group into features, factor_of(scale, norm, row) where the
// values of a row are not all zero; false if features would overflow. The scales of a row's blocks
// stand together, `stride` of them.
template <class T, class E, class FactorOf>
inline bool feature_factors(const E *values, std::size_t size, const double *scales,
                            std::size_t stride, std::size_t count, const FactorOf &factor_of,
                            T (&factor)[kRowsIn<E>]) {
    constexpr double largest = sizeof(T) == 4 ? double(__FLT_MAX__) : __DBL_MAX__;
    const E squares = sum_of_squares(values, size);
    bool representable = true;
    for (std::size_t r = 0; r < kRowsIn<E>; ++r) {
        const double scale = scales[(r < count ? r : count - 1) * stride];
        const double norm = __builtin_sqrt(double(row_of(squares, r)));
        const double value = norm > 0 ? factor_of(scale, norm, r) : 0.0;
        factor[r] = T(value);
        const double magnitude = __builtin_fabs(value);
        representable = representable && magnitude <= largest && magnitude * norm <= largest;
    }
    return representable;
}

inline Vec<double> load_doubles(const double *p) { return load_unaligned(p); }
inline Vec<double> load_doubles(const float *p) {
    typedef float Half __attribute__((vector_size(PS_VECTOR_BYTES / 2), aligned(4)));
    return __builtin_convertvector(*reinterpret_cast<const Half *>(p), Vec<double>);
}

// Eight partial sums in vectors.
struct EightSums {
    static constexpr std::size_t W = kLanes<double>;
    Vec<double> parts[8 / W] = {};

    // Adds v[c] w[c] for eight consecutive numbers.
    template <class A, class B> PS_INLINE void add(const A *v, const B *w) {
#pragma GCC unroll 4
        for (std::size_t c = 0; c < 8 / W; ++c)
            parts[c] += load_doubles(v + c * W) * load_doubles(w + c * W);
    }
    // The sum of all, with the last few products, of which there are fewer than eight.
    template <class A, class B>
    PS_INLINE double total(const A *v, const B *w, std::size_t count) const {
        double sums[8];
#pragma GCC unroll 4
        for (std::size_t c = 0; c < 8 / W; ++c)
            store_unaligned(sums + c * W, parts[c]);
        for (std::size_t c = 0; c < count; ++c)
            sums[c] += double(v[c]) * double(w[c]);
        return add_eight(sums);
    }
};

template <bool dots, class T>
inline void dense_moments(const MomentsPlan &plan, const T *x, std::size_t row) {
    const std::size_t columns = plan.columns;
    const double *direction = plan.direction;
    EightSums square, dot;
    std::size_t j = 0;
    for (; j + 8 <= columns; j += 8) {
        square.add(x + j, x + j);
        if (dots)
            dot.add(x + j, direction + j);
    }
    plan.squares[row] = square.total(x + j, x + j, columns - j);
    if (dots)
        plan.dots[row] = dot.total(x + j, direction + j, columns - j);
}

template <class T> void moments_rows(const MomentsPlan &plan, Rows<const T> input, Share share) {
    for (std::size_t i = share.begin; i < share.end; ++i)
        plan.dots ? dense_moments<true>(plan, input.row(i), i)
                  : dense_moments<false>(plan, input.row(i), i);
}

template <class T, class I>
void moments_sparse_rows(const MomentsPlan &plan, SparseRows<T, I> input, Share share) {
    for (std::size_t i = share.begin; i < share.end; ++i) {
        double square[8] = {}, dot[8] = {};
        for (std::int64_t e = input.indptr[i]; e < input.indptr[i + 1]; ++e) {
            const std::size_t j = std::size_t(input.columns[e]);
            const double v = double(input.values[e]);
            square[j % 8] += v * v;
            if (plan.dots)
                dot[j % 8] += v * plan.direction[j];
        }
        plan.squares[i] = add_eight(square);
        if (plan.dots)
            plan.dots[i] = add_eight(dot);
    }
}
