// Structured orthogonal projections (SORF) of dense rows, and the cosines and sines of projections
// that are given in turns.
// Included once per instruction set (see routines.hpp).

// The coefficients of fourier_tables.py, which says where they come from.
template <class T> struct Sine;
template <> struct Sine<float> {
    static constexpr float coefficients[] = {6.28318548f, -41.3416824f, 81.602478f, -76.5811691f,
                                             39.7598267f};
    static constexpr float integers = 0x1.8p23f; // added to a number, leaves no bits for a fraction
};
template <> struct Sine<double> {
    static constexpr double coefficients[] = {
        6.283185307179586,  -41.341702240399755, 81.60524927607362,
        -76.70585975282492, 42.058693925428685,  -15.0946416761179,
        3.8199280942271643, -0.7177337921413454, 0.10089695501646812};
    static constexpr double integers = 0x1.8p52;
};

// sin(2 pi b) for |b| <= 1/4.
template <class T> PS_INLINE Vec<T> sine(Vec<T> b) {
    constexpr std::size_t terms = sizeof(Sine<T>::coefficients) / sizeof(T);
    const Vec<T> square = b * b;
    Vec<T> sum = broadcast(Sine<T>::coefficients[terms - 1]);
#pragma GCC unroll 8
    for (std::size_t k = terms - 1; k > 0; --k)
        sum = sum * square + broadcast(Sine<T>::coefficients[k - 1]);
    return sum * b;
}

// If a is not a number, neither is the result.
template <class T> PS_INLINE Vec<T> smaller(Vec<T> a, Vec<T> b) { return b < a ? b : a; }

// Replaces turns by their cosine and returns their sine, both times `scale`.
template <class T> PS_INLINE Vec<T> cosine_and_sine(Vec<T> &turns, Vec<T> scale) {
    constexpr Bits<T> top = Bits<T>(1) << (8 * sizeof(T) - 1);
    const Vec<T> integers = broadcast(Sine<T>::integers), half = broadcast(T(0.5));
    const Vec<T> remainder = turns - ((turns + integers) - integers);
    const auto bits = reinterpret_cast<BitVec<T>>(remainder);
    // Where turns are too many to have a fraction, the sum is off by more than half a turn.
    const Vec<T> distance = smaller<T>(reinterpret_cast<Vec<T>>(bits & ~top), half);
    turns = sine<T>(broadcast(T(0.25)) - distance) * scale;
    const auto size = reinterpret_cast<BitVec<T>>(sine<T>(smaller<T>(distance, half - distance)));
    return reinterpret_cast<Vec<T>>(size ^ (bits & top)) * scale;
}

template <class T>
inline void fourier_row(const T *turns, std::size_t n, T scale, T *cosines, T *sines) {
    constexpr std::size_t W = kLanes<T>;
    const Vec<T> factor = broadcast(scale);
    std::size_t k = 0;
    for (; k + W <= n; k += W) {
        Vec<T> v = load_unaligned(turns + k);
        store_unaligned(sines + k, cosine_and_sine<T>(v, factor));
        store_unaligned(cosines + k, v);
    }
    Vec<T> v{};
    for (std::size_t c = 0; k + c < n; ++c)
        v[c] = turns[k + c];
    const Vec<T> last_sines = cosine_and_sine<T>(v, factor);
    for (std::size_t c = 0; k + c < n; ++c) {
        cosines[k + c] = v[c];
        sines[k + c] = last_sines[c];
    }
}

template <class T> inline std::size_t longest_part(const SorfPlan<T> &plan) {
    std::size_t longest = 0;
    for (std::size_t b = 0; b < plan.blocks; ++b)
        if (plan.starts[b + 1] - plan.starts[b] > longest)
            longest = plan.starts[b + 1] - plan.starts[b];
    return longest;
}

template <class T> std::size_t sorf_workspace(const SorfPlan<T> &plan) {
    const bool lanes = fits_lanes(plan.padded);
    const std::size_t element = lanes ? PS_VECTOR_BYTES : sizeof(T), rows = lanes ? kLanes<T> : 1;
    return 2 * piece_bytes(plan.padded * element) +
           rows * piece_bytes(longest_part(plan) * sizeof(T));
}

// The row itself, padded with zeros, for one row and for W rows.
template <class T>
inline void load_padded(const SorfPlan<T> &plan, Rows<const T> input, std::size_t row, std::size_t,
                        T *x) {
    for (std::size_t j = 0; j < plan.padded; ++j)
        x[j] = j < plan.columns ? input.row(row)[j] : T(0);
}
template <class T>
inline void load_padded(const SorfPlan<T> &plan, Rows<const T> input, std::size_t begin,
                        std::size_t count, Vec<T> *x) {
    const InputGroup<T> from(input, begin, count);
    load_lanes<false>(from.rows, plan.columns, Unchanged<T>{}, x, plan.padded);
}

// The kept coordinates of a block, k = first .. last, to one row and to W rows.
template <class T>
inline void keep(const SorfPlan<T> &plan, const T *block, std::size_t first, std::size_t last,
                 T *const *rows) {
    const std::size_t mask = plan.padded - 1;
    for (std::size_t k = first; k < last; ++k)
        rows[0][k - first] = block[std::size_t(plan.indices[k]) & mask] * plan.scales[k];
}
template <class T>
inline void keep(const SorfPlan<T> &plan, const Vec<T> *block, std::size_t first, std::size_t last,
                 T *const *rows) {
    const std::int32_t *indices = plan.indices + first;
    const T *scales = plan.scales + first;
    const std::size_t mask = plan.padded - 1;
    store_lanes<T>(
        [=](std::size_t k) { return block[std::size_t(indices[k]) & mask] * broadcast(scales[k]); },
        rows, last - first);
}

// emit(row, first, coordinates, size) for every row of a group and every block: what is kept of it
// goes to the outputs from `first` on. The rows are read once, for all blocks.
template <class T, class E, class Emit>
inline void sorf_group(const SorfPlan<T> &plan, Rows<const T> input, std::size_t begin,
                       std::size_t count, char *workspace, const Emit &emit) {
    Arena arena{workspace};
    const std::size_t n = plan.padded, longest = longest_part(plan);
    E *x = arena.take<E>(n), *block = arena.take<E>(n);
    T *kept[kRowsIn<E>];
    for (T *&row : kept)
        row = arena.take<T>(longest);
    load_padded(plan, input, begin, count, x);
    for (std::size_t b = 0; b < plan.blocks; ++b) {
        const std::size_t first = plan.starts[b], last = plan.starts[b + 1];
        if (first == last)
            continue;
        const T *diagonals = plan.diagonals + 3 * n * b;
        transform_signed(x, diagonals, block, n);
        transform_signed(block, diagonals + n, block, n);
        transform_signed(block, diagonals + 2 * n, block, n);
        keep(plan, block, first, last, kept);
        for (std::size_t r = 0; r < count; ++r)
            emit(begin + r, first, kept[r], last - first);
    }
}

template <class T, class Emit>
inline void sorf_groups(const SorfPlan<T> &plan, Rows<const T> input, Share share,
                        const Emit &emit) {
    for_groups<T>(fits_lanes(plan.padded), share,
                  [&](auto in, std::size_t begin, std::size_t count) {
                      sorf_group<T, typename decltype(in)::Element>(plan, input, begin, count,
                                                                    share.workspace, emit);
                  });
}

template <class T>
void sorf_rows(const SorfPlan<T> &plan, Rows<const T> input, Rows<T> output, Share share) {
    sorf_groups(plan, input, share,
                [=](std::size_t row, std::size_t first, const T *coordinates, std::size_t size) {
                    T *target = output.row(row) + first;
                    for (std::size_t k = 0; k < size; ++k)
                        target[k] = coordinates[k];
                });
}

// All cosines of a row stand before all of its sines.
template <class T>
void fourier_rows(const SorfPlan<T> &plan, Rows<const T> input, Rows<T> output, Share share) {
    const std::size_t count = plan.count();
    const T scale = plan.feature_scale;
    sorf_groups(plan, input, share,
                [=](std::size_t row, std::size_t first, const T *turns, std::size_t size) {
                    T *cosines = output.row(row) + first;
                    fourier_row(turns, size, scale, cosines, cosines + count);
                });
}
