// Exponentials of double precision, and the Gaussian kernel from inner products.
// Included once per instruction set (see routines.hpp).

// The numbers of reference/exponential.py, which says where they come from.
struct Exponential {
    static constexpr double least = -746.0; // of the arguments whose exponential may not be zero
    static constexpr double inverse_of_log_2 = 1.4426950408889634;
    static constexpr double log_2_high = 0.6931471805598903;
    static constexpr double log_2_low = 5.497923018708371e-14;
    static constexpr double integers = 0x1.8p52 + 2046.0;
    static constexpr double coefficients[] = {0.5000000000000001,     0.16666666666666669,
                                              0.041666666666624164,   0.008333333333330065,
                                              0.0013888888917196719,  0.00019841269863040545,
                                              2.4801521322368448e-05, 2.7557268480309837e-06,
                                              2.7620075880100385e-07, 2.510037583265122e-08};
};

// Every operation of an exponential waits for the one before. Several vectors take the steps
// abreast, or the processor would wait, too.
constexpr std::size_t kAbreast = 4;
constexpr std::size_t kAbreastLanes = kAbreast * kLanes<double>;

struct Abreast {
    Vec<double> parts[kAbreast];
};
template <class Function> PS_INLINE Abreast abreast(const Function &function) {
    Abreast result;
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kAbreast; ++c)
        result.parts[c] = function(c);
    return result;
}
PS_INLINE Abreast operator+(const Abreast &a, const Abreast &b) {
    return abreast([&](std::size_t c) { return a.parts[c] + b.parts[c]; });
}
PS_INLINE Abreast operator-(const Abreast &a, const Abreast &b) {
    return abreast([&](std::size_t c) { return a.parts[c] - b.parts[c]; });
}
PS_INLINE Abreast operator*(const Abreast &a, const Abreast &b) {
    return abreast([&](std::size_t c) { return a.parts[c] * b.parts[c]; });
}
PS_INLINE Abreast operator+(const Abreast &a, double b) {
    return abreast([&](std::size_t c) { return a.parts[c] + broadcast(b); });
}
PS_INLINE Abreast operator-(const Abreast &a, double b) {
    return abreast([&](std::size_t c) { return a.parts[c] - broadcast(b); });
}
PS_INLINE Abreast operator*(const Abreast &a, double b) {
    return abreast([&](std::size_t c) { return a.parts[c] * broadcast(b); });
}

// v, or zero where x is below `bound`.
PS_INLINE Abreast zero_below(const Abreast &x, double bound, const Abreast &v) {
    return abreast([&](std::size_t c) {
        const auto below = reinterpret_cast<BitVec<double>>(x.parts[c] < broadcast(bound));
        return reinterpret_cast<Vec<double>>(reinterpret_cast<BitVec<double>>(v.parts[c]) & ~below);
    });
}

// exp(r) for |r| <= log(2) / 2, few of whose operations wait for each other (Estrin's scheme).
PS_INLINE Abreast exponential_near_zero(const Abreast &r) {
    const double *c = Exponential::coefficients;
    const Abreast square = r * r, fourth = square * square;
    const Abreast low = (r * c[1] + c[0]) + square * (r * c[3] + c[2]);
    const Abreast middle = (r * c[5] + c[4]) + square * (r * c[7] + c[6]);
    const Abreast high = r * c[9] + c[8];
    const Abreast terms = (low + fourth * middle) + (fourth * fourth) * high;
    return (r + square * terms) + 1.0;
}

// Two powers of two whose product is 2^n. The last bits of `shifted` are n + 2046, the sum of the
// exponents with bias. Below the smallest normal number only the second factor rounds.
PS_INLINE Abreast first_factor(const Abreast &shifted) {
    return abreast([&](std::size_t c) {
        const auto bits = reinterpret_cast<BitVec<double>>(shifted.parts[c]);
        return reinterpret_cast<Vec<double>>((bits >> 1) << 52);
    });
}
PS_INLINE Abreast second_factor(const Abreast &shifted) {
    return abreast([&](std::size_t c) {
        const auto bits = reinterpret_cast<BitVec<double>>(shifted.parts[c]);
        return reinterpret_cast<Vec<double>>((bits - (bits >> 1)) << 52);
    });
}

// exp(x) for x <= 0; not a number if x is none.
PS_INLINE Abreast exponential(const Abreast &x) {
    // Zeros are put in, as many machines are slow at products too small to be represented.
    const Abreast y = zero_below(x, Exponential::least, x);
    const Abreast shifted = y * Exponential::inverse_of_log_2 + Exponential::integers;
    const Abreast n = shifted - Exponential::integers;
    const Abreast remainder = (y - n * Exponential::log_2_high) - n * Exponential::log_2_low;
    const Abreast power = exponential_near_zero(remainder);
    const Abreast scaled = power * first_factor(shifted) * second_factor(shifted);
    return zero_below(x, Exponential::least, scaled);
}

PS_INLINE void store_doubles(double *p, Vec<double> v) { store_unaligned(p, v); }
PS_INLINE void store_doubles(float *p, Vec<double> v) {
    typedef float Half __attribute__((vector_size(PS_VECTOR_BYTES / 2)));
    typedef float Unaligned __attribute__((vector_size(PS_VECTOR_BYTES / 2), aligned(4)));
    *reinterpret_cast<Unaligned *>(p) = __builtin_convertvector(v, Half);
}

// kAbreastLanes entries of a row whose squared norm is `left`.
template <class P, class T>
PS_INLINE void write_gaussian(const P *products, double left, const double *right, double gamma,
                              T *out) {
    constexpr std::size_t W = kLanes<double>;
    const Abreast distances = abreast([&](std::size_t c) {
        return (broadcast(-2.0) * load_doubles(products + c * W) + broadcast(left)) +
               load_unaligned(right + c * W);
    });
    // Rounding may leave a distance just below zero; what is not a number stays that.
    const Abreast values = exponential(zero_below(distances, 0.0, distances) * -gamma);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kAbreast; ++c)
        store_doubles(out + c * W, values.parts[c]);
}

// exp(-gamma max(left_i + right_j - 2 products_ij, 0)), computed in double precision. The output
// may be the products themselves.
template <class P, class T>
void gaussian_rows(const GaussianPlan &plan, Rows<const P> products, Rows<T> output, Share share) {
    const std::size_t columns = plan.columns;
    const std::size_t whole = columns / kAbreastLanes * kAbreastLanes, rest = columns - whole;
    double last_right[kAbreastLanes] = {};
    P last_products[kAbreastLanes] = {};
    for (std::size_t c = 0; c < rest; ++c)
        last_right[c] = plan.right[whole + c];
    for (std::size_t i = share.begin; i < share.end; ++i) {
        const P *from = products.row(i);
        T *to = output.row(i), last[kAbreastLanes];
        for (std::size_t j = 0; j < whole; j += kAbreastLanes)
            write_gaussian(from + j, plan.left[i], plan.right + j, plan.gamma, to + j);
        if (!rest)
            continue;
        for (std::size_t c = 0; c < rest; ++c)
            last_products[c] = from[whole + c];
        write_gaussian(last_products, plan.left[i], last_right, plan.gamma, last);
        for (std::size_t c = 0; c < rest; ++c)
            to[whole + c] = last[c];
    }
}
