// Fourier transforms of lengths without prime factors above 5, for one row (E = T) or for W rows at
// once, lane = row (E = Vec<T>). The order of all sums is that of reference/tensor_sketch.py, where
// the formulas are explained.
// Included once per instruction set (see routines.hpp).

template <class E> struct Complex {
    E re, im;
};
template <class E> PS_INLINE Complex<E> operator+(Complex<E> a, Complex<E> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class E> PS_INLINE Complex<E> operator-(Complex<E> a, Complex<E> b) {
    return {a.re - b.re, a.im - b.im};
}

// A product that is rounded before anything is added to it. GCC 12 turns alternating sums and
// differences of products into fused multiply-adds, against -ffp-contract=off.
template <class E, class F> PS_INLINE E times(E a, F b) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
    return __builtin_assoc_barrier(a * b);
#else
    return a * b;
#endif
}
template <class E> PS_INLINE Complex<E> operator*(Complex<E> a, Complex<E> b) {
    return {times(a.re, b.re) - times(a.im, b.im), times(a.re, b.im) + times(a.im, b.re)};
}

template <class E, class F> PS_INLINE Complex<E> scaled(Complex<E> a, F factor) {
    return {times(a.re, factor), times(a.im, factor)};
}

// Products with a number of a table, the same for all rows, or with its conjugate.
template <bool conjugate, class E, class T> PS_INLINE Complex<E> turned(Complex<E> a, const T *w) {
    if (conjugate)
        return {times(a.re, w[0]) + times(a.im, w[1]), times(a.im, w[0]) - times(a.re, w[1])};
    return {times(a.re, w[0]) - times(a.im, w[1]), times(a.re, w[1]) + times(a.im, w[0])};
}

// The transform of r numbers in registers; r is a constant once everything is inlined.
template <class E, class T>
PS_INLINE void transform_odd(Complex<E> *v, std::size_t r, const T *roots) {
    const std::size_t half = r / 2;
    Complex<E> sums[kLargestRadix / 2], differences[kLargestRadix / 2];
    const Complex<E> first = v[0];
#pragma GCC unroll 2
    for (std::size_t q = 1; q <= half; ++q) {
        sums[q - 1] = v[q] + v[r - q];
        differences[q - 1] = v[q] - v[r - q];
        v[0] = v[0] + sums[q - 1];
    }
#pragma GCC unroll 2
    for (std::size_t p = 1; p <= half; ++p) {
        const T *w = roots + 2 * p;
        std::size_t turns = p; // p q modulo r
        Complex<E> even = first + scaled(sums[0], w[0]);
        Complex<E> odd = scaled(differences[0], w[1]);
#pragma GCC unroll 2
        for (std::size_t q = 2; q <= half; ++q) {
            turns = turns + p < r ? turns + p : turns + p - r;
            w = roots + 2 * turns;
            even = even + scaled(sums[q - 1], w[0]);
            odd = odd + scaled(differences[q - 1], w[1]);
        }
        v[p] = {even.re - odd.im, even.im + odd.re};
        v[r - p] = {even.re + odd.im, even.im - odd.re};
    }
}
template <class E, class T>
PS_INLINE void small_transform(Complex<E> *v, std::size_t r, const T *roots) {
    if (r == 2) {
        const Complex<E> a = v[0], b = v[1];
        v[0] = a + b;
        v[1] = a - b;
    } else if (r == 4) {
        const Complex<E> even = v[0] + v[2], even_rest = v[0] - v[2];
        const Complex<E> odd = v[1] + v[3], odd_rest = v[1] - v[3];
        v[0] = even + odd;
        v[1] = {even_rest.re + odd_rest.im, even_rest.im - odd_rest.re};
        v[2] = even - odd;
        v[3] = {even_rest.re - odd_rest.im, even_rest.im + odd_rest.re};
    } else {
        transform_odd(v, r, roots);
    }
}

// One place of a step: r numbers `span` apart; `twiddles` is null at the first place.
template <bool inverse, class E, class T>
PS_INLINE void transform_place(Complex<E> *data, std::size_t r, std::size_t span, const T *roots,
                               const T *twiddles) {
    Complex<E> v[kLargestRadix];
    v[0] = data[0];
#pragma GCC unroll 5
    for (std::size_t p = 1; p < r; ++p) {
        const Complex<E> value = data[p * span];
        v[p] = inverse && twiddles ? turned<true>(value, twiddles + 2 * (p - 1)) : value;
    }
    small_transform(v, r, roots);
    data[0] = v[0];
#pragma GCC unroll 5
    for (std::size_t p = 1; p < r; ++p) {
        if (inverse)
            data[p * span] = v[r - p];
        else
            data[p * span] = twiddles ? turned<false>(v[p], twiddles + 2 * (p - 1)) : v[p];
    }
}

template <bool inverse, class E, class T>
PS_INLINE void transform_blocks(Complex<E> *data, std::size_t blocks, std::size_t r,
                                const FftStep<T> &step) {
    const std::size_t span = step.span;
    for (std::size_t b = 0; b < blocks; ++b, data += r * span) {
        for (std::size_t j = 0; j < span; ++j) {
            const T *twiddles = j ? step.twiddles + 2 * (j - 1) * (r - 1) : nullptr;
            transform_place<inverse>(data + j, r, span, step.roots, twiddles);
        }
    }
}

template <bool inverse, class E, class T>
inline void apply_step(Complex<E> *data, std::size_t blocks, const FftStep<T> &step) {
    if (step.radix == 2)
        return transform_blocks<inverse>(data, blocks, 2, step);
    if (step.radix == 3)
        return transform_blocks<inverse>(data, blocks, 3, step);
    if (step.radix == 4)
        return transform_blocks<inverse>(data, blocks, 4, step);
    transform_blocks<inverse>(data, blocks, 5, step);
}

// All steps from `first` on, in place, over a block of that step; parts too long for the nearest
// cache are finished one after the other. Frequencies are left at, and taken from, the plan's
// positions; the inverse gives `count` times as much.
template <bool inverse, class E, class T>
inline void apply_steps(const FftPlan<T> &plan, std::size_t first, Complex<E> *data) {
    if (first == plan.step_count)
        return;
    const FftStep<T> &step = plan.steps[first];
    const std::size_t length = step.radix * step.span;
    if (length * sizeof(Complex<E>) > kBlockBytes) {
        if (!inverse)
            apply_step<false>(data, 1, step);
        for (std::size_t p = 0; p < step.radix; ++p)
            apply_steps<inverse>(plan, first + 1, data + p * step.span);
        if (inverse)
            apply_step<true>(data, 1, step);
        return;
    }
    const std::size_t count = plan.step_count - first;
    for (std::size_t s = 0; s < count; ++s) {
        const FftStep<T> &next = plan.steps[inverse ? plan.step_count - 1 - s : first + s];
        apply_step<inverse>(data, length / (next.radix * next.span), next);
    }
}

template <class E> PS_INLINE E larger(E a, E b) { return a < b ? b : a; }
template <class E> PS_INLINE E larger(E a, Complex<E> b) {
    return larger(larger(a, larger(b.re, -b.re)), larger(b.im, -b.im));
}

// A real spectrum in the making: every frequency is written, or multiplied into what is there.
template <bool first, class E> struct Product {
    Complex<E> *spectrum;
    E largest{};

    PS_INLINE void put(std::size_t k, Complex<E> value) {
        keep(k, first ? value : spectrum[k] * value);
    }
    // The first and the last frequency of an even length: two real numbers.
    PS_INLINE void put_ends(E zero, E last) {
        keep(0, first ? Complex<E>{zero, last}
                      : Complex<E>{spectrum[0].re * zero, spectrum[0].im * last});
    }

private:
    PS_INLINE void keep(std::size_t k, Complex<E> value) {
        spectrum[k] = value;
        largest = larger(largest, value);
    }
};

// Multiplies the spectrum of real rows, whose `length` numbers lie at the start of `data`, into
// `product`, and returns the largest part of that. An even length needs halved rows.
template <bool first, class E, class T>
inline E multiply_spectrum(const FftPlan<T> &plan, Complex<E> *data, Complex<E> *spectrum) {
    Product<first, E> product{spectrum};
    const std::size_t count = plan.count;
    const std::int32_t *positions = plan.positions;
    if (plan.length % 2) {
        const E *values = reinterpret_cast<const E *>(data);
        for (std::size_t j = count; j-- > 0;) {
            const E value = values[j]; // read before its place is written
            data[j] = {value, E{}};
        }
        apply_steps<false>(plan, 0, data);
        for (std::size_t k = 0; k <= count / 2; ++k)
            product.put(k, data[positions[k]]);
        return product.largest;
    }
    apply_steps<false>(plan, 0, data);
    const Complex<E> ends = data[positions[0]];
    product.put_ends((ends.re + ends.im) * T(2), (ends.re - ends.im) * T(2));
    for (std::size_t k = 1; k <= count / 2; ++k) {
        const Complex<E> a = data[positions[k]], b = data[positions[count - k]];
        const Complex<E> sum{a.re + b.re, a.im - b.im}, difference{a.re - b.re, a.im + b.im};
        const Complex<E> other = turned<false>(difference, plan.roots + 2 * k);
        product.put(k, {sum.re + other.im, sum.im - other.re});
        if (k < count - k)
            product.put(count - k, {sum.re - other.im, -(sum.im + other.re)});
    }
    return product.largest;
}

// The real rows with the spectrum times `scale`, `length` times as large, at the start of `data`.
template <class E, class T>
inline void rows_of_spectrum(const FftPlan<T> &plan, const Complex<E> *spectrum, E scale,
                             Complex<E> *data) {
    const std::size_t count = plan.count;
    const std::int32_t *positions = plan.positions;
    const auto at = [=](std::size_t k) { return scaled(spectrum[k], scale); };
    if (plan.length % 2) {
        data[positions[0]] = at(0);
        for (std::size_t k = 1; k <= count / 2; ++k) {
            const Complex<E> value = at(k);
            data[positions[k]] = value;
            data[positions[count - k]] = {value.re, -value.im};
        }
        apply_steps<true>(plan, 0, data);
        E *values = reinterpret_cast<E *>(data);
        for (std::size_t j = 0; j < count; ++j) {
            const E value = data[j].re;
            values[j] = value;
        }
        return;
    }
    const Complex<E> ends = at(0);
    data[positions[0]] = {ends.re + ends.im, ends.re - ends.im};
    for (std::size_t k = 1; k <= count / 2; ++k) {
        const Complex<E> a = at(k), b = at(count - k);
        const Complex<E> sum{a.re + b.re, a.im - b.im}, difference{a.re - b.re, a.im + b.im};
        const Complex<E> other = turned<true>(difference, plan.roots + 2 * k);
        data[positions[count - k]] = {sum.re + other.im, other.re - sum.im};
        data[positions[k]] = {sum.re - other.im, sum.im + other.re};
    }
    apply_steps<true>(plan, 0, data);
}
