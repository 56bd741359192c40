// Squared norms and projections of rows in double precision, and products with a dense matrix.
// Included once per instruction set (see kernels.hpp).

// Eight partial sums, by coordinate modulo eight, whatever the vector's width; the tree that adds
// them is part of the law.
constexpr std::size_t kPartVectors = 8 / kLanes<double>;

inline Vec<double> load_doubles(const double *p) { return load_unaligned(p); }
inline Vec<double> load_doubles(const float *p) {
    typedef float Half __attribute__((vector_size(PS_VECTOR_BYTES / 2), aligned(4)));
    return __builtin_convertvector(*reinterpret_cast<const Half *>(p), Vec<double>);
}

inline double add_parts(const double *s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

template <class T>
void moments_rows(std::size_t columns, Rows<const T> input, const double *direction,
                  double *squares, double *dots, std::size_t begin, std::size_t end) {
    constexpr std::size_t W = kLanes<double>;
    for (std::size_t i = begin; i < end; ++i) {
        const T *x = input.row(i);
        Vec<double> square[kPartVectors] = {}, dot[kPartVectors] = {};
        std::size_t j = 0;
        for (; j + 8 <= columns; j += 8)
#pragma GCC unroll 4
            for (std::size_t c = 0; c < kPartVectors; ++c) {
                const Vec<double> v = load_doubles(x + j + c * W);
                square[c] += v * v;
                dot[c] += v * load_doubles(direction + j + c * W);
            }
        for (std::size_t c = 0; j + c < columns; ++c) {
            const double v = double(x[j + c]);
            square[c / W][c % W] += v * v;
            dot[c / W][c % W] += v * direction[j + c];
        }
        squares[i] = add_parts(reinterpret_cast<const double *>(square));
        dots[i] = add_parts(reinterpret_cast<const double *>(dot));
    }
}

template <class T, class I>
void moments_sparse_rows(SparseRows<T, I> input, const double *direction, double *squares,
                         double *dots, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        double square[8] = {}, dot[8] = {};
        for (std::int64_t e = input.indptr[i]; e < input.indptr[i + 1]; ++e) {
            const std::size_t j = std::size_t(input.columns[e]);
            const double v = double(input.values[e]);
            square[j % 8] += v * v;
            dot[j % 8] += v * direction[j];
        }
        squares[i] = add_parts(square);
        dots[i] = add_parts(dot);
    }
}

// target[k] += value * matrix_row[k]: sums run over the coordinates in order, whatever the batch.
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
void product_rows(std::size_t columns, std::size_t size, const T *matrix, Rows<const T> input,
                  Rows<T> output, std::size_t begin, std::size_t end) {
    constexpr std::size_t group = 8; // rows that share one reading of the matrix
    for (std::size_t base = begin; base < end; base += group) {
        const std::size_t stop = end - base < group ? end : base + group;
        for (std::size_t i = base; i < stop; ++i)
            for (std::size_t k = 0; k < size; ++k)
                output.row(i)[k] = 0;
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t i = base; i < stop; ++i)
                add_multiple(output.row(i), input.row(i)[j], matrix + j * size, size);
    }
}

template <class T, class I>
void product_sparse_rows(std::size_t size, const T *matrix, SparseRows<T, I> input, Rows<T> output,
                         std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        for (std::size_t k = 0; k < size; ++k)
            output.row(i)[k] = 0;
        for (std::int64_t e = input.indptr[i]; e < input.indptr[i + 1]; ++e)
            add_multiple(output.row(i), input.values[e], matrix + std::size_t(input.columns[e]) * size,
                         size);
    }
}
