// Runs every routine of every vector width on the same inputs and compares the bits. Built with the
// sanitizers and without any -mavx flag: wide vectors are then lowered to plain instructions, so
// that the AVX2 and AVX-512 layouts are tested on every machine, memory accesses included.
#include "../routine_table.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

using namespace powersketch;

namespace {

int passed = 0, failed = 0;

// Inputs sit in allocations of exactly their size, one element off alignment.
template <class T> class Unaligned {
public:
    explicit Unaligned(std::size_t n) : memory_(new T[n + 1]), size_(n) {}
    T *data() { return memory_.get() + 1; }
    std::size_t size() const { return size_; }

private:
    std::unique_ptr<T[]> memory_;
    std::size_t size_;
};

class Numbers {
public:
    std::uint32_t word() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return std::uint32_t(state_ >> 33);
    }
    double uniform() { return double(word()) / 2147483648.0 - 0.5; }
    template <class T> Unaligned<T> values(std::size_t n) {
        Unaligned<T> result(n);
        for (std::size_t i = 0; i < n; ++i)
            result.data()[i] = T(uniform());
        return result;
    }
    template <class T> Unaligned<T> signs(std::size_t n) {
        Unaligned<T> result(n);
        for (std::size_t i = 0; i < n; ++i)
            result.data()[i] = word() & 1 ? T(1) : T(-1);
        return result;
    }
    Unaligned<std::int32_t> indices(std::size_t n, std::size_t bound) {
        Unaligned<std::int32_t> result(n);
        for (std::size_t i = 0; i < n; ++i)
            result.data()[i] = std::int32_t(word() % bound);
        return result;
    }

private:
    std::uint64_t state_ = 12345;
};

struct Workspace {
    explicit Workspace(std::size_t bytes)
        : memory(static_cast<char *>(std::aligned_alloc(64, (bytes + 127) / 64 * 64))) {}
    Workspace(const Workspace &) = delete;
    ~Workspace() { std::free(memory); }
    Share share(std::size_t rows) const { return {0, rows, memory}; }
    char *memory;
};

template <class T> const Routines<T> &of(const InstructionSet &set);
template <> const Routines<float> &of(const InstructionSet &set) { return set.single; }
template <> const Routines<double> &of(const InstructionSet &set) { return set.full; }

const InstructionSet *const kSets[] = {&baseline_instructions(), &avx2_instructions(),
                                       &avx512_instructions()};

// run(routines, output) for every set; all outputs must equal the first one's.
template <class T, class R = T, class Run>
void compare(const char *what, std::size_t outputs, const Run &run) {
    std::vector<T> expected;
    for (const InstructionSet *set : kSets) {
        Unaligned<T> output(outputs);
        std::memset(output.data(), 0, outputs * sizeof(T));
        run(of<R>(*set), output.data());
        std::vector<T> actual(output.data(), output.data() + outputs);
        if (expected.empty())
            expected = actual;
        const bool same = !std::memcmp(actual.data(), expected.data(), outputs * sizeof(T));
        same ? ++passed : ++failed;
        if (!same)
            std::printf("%s: %s differs from %s (%zu-byte numbers)\n", what, set->name,
                        kSets[0]->name, sizeof(T));
    }
}

std::size_t padded(std::size_t n) {
    std::size_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

template <class T>
SrhtPlan<T> srht_plan(std::size_t columns, Unaligned<T> &signs, Unaligned<std::int32_t> &indices) {
    SrhtPlan<T> plan{};
    plan.columns = columns;
    plan.padded = padded(columns);
    plan.size = indices.size();
    plan.signs = signs.data();
    plan.indices = indices.data();
    plan.scale = T(0.3);
    return plan;
}

template <class T>
ScatterPlan<T> scatter_plan(std::size_t columns, std::size_t size, std::size_t copies,
                            const std::int32_t *table, std::uint64_t key) {
    ScatterPlan<T> plan{};
    plan.columns = columns;
    plan.size = size;
    plan.sparsity = copies;
    plan.table = table;
    plan.key = key;
    plan.scale = T(0.5);
    return plan;
}

template <class T> void test_transforms(std::size_t rows, std::size_t columns) {
    Numbers random;
    const std::size_t n = padded(columns), size = n < 100 ? n : 100;
    auto X = random.values<T>(rows * columns);
    auto signs = random.signs<T>(columns);
    auto indices = random.indices(size, n);
    const auto plan = srht_plan(columns, signs, indices);
    const Rows<const T> input{X.data(), columns};
    compare<T>("transform", rows * n, [&](const Routines<T> &k, T *out) {
        Workspace space(k.transform_workspace({columns, n}));
        k.transform({columns, n}, input, {out, n}, space.share(rows));
    });
    compare<T>("srht", rows * size, [&](const Routines<T> &k, T *out) {
        Workspace space(k.srht_workspace(plan));
        k.srht(plan, input, {out, size}, space.share(rows));
    });
    auto direction = random.values<double>(columns);
    for (const bool dots : {false, true})
        compare<double, T>("moments", 2 * rows, [&](const Routines<T> &k, double *out) {
            const MomentsPlan moments{columns, direction.data(), out, dots ? out + rows : nullptr};
            k.moments(moments, input, {0, rows, nullptr});
        });
}

// Three blocks, the second of which is not used.
template <class T> void test_projections(std::size_t rows, std::size_t columns, std::size_t size) {
    Numbers random;
    const std::size_t n = padded(columns), half = size / 2;
    auto X = random.values<T>(rows * columns), scales = random.values<T>(size);
    auto diagonals = random.signs<T>(9 * n);
    auto indices = random.indices(size, n);
    for (std::size_t k = half; k < size; ++k)
        indices.data()[k] += std::int32_t(2 * n);
    const std::size_t starts[] = {0, half, half, size};
    SorfPlan<T> plan{};
    plan.columns = columns;
    plan.padded = n;
    plan.blocks = 3;
    plan.diagonals = diagonals.data();
    plan.indices = indices.data();
    plan.scales = scales.data();
    plan.starts = starts;
    plan.feature_scale = T(0.3);
    const Rows<const T> input{X.data(), columns};
    compare<T>("sorf", rows * size, [&](const Routines<T> &k, T *out) {
        Workspace space(k.sorf_workspace(plan));
        k.sorf(plan, input, {out, size}, space.share(rows));
    });
    compare<T>("fourier", rows * 2 * size, [&](const Routines<T> &k, T *out) {
        Workspace space(k.sorf_workspace(plan));
        k.fourier(plan, input, {out, 2 * size}, space.share(rows));
    });
}

template <class T> void test_pairs(std::size_t rows, std::size_t length, std::size_t columns) {
    Numbers random;
    auto A = random.values<T>(rows * columns), B = random.values<T>(rows * columns);
    auto first_signs = random.signs<T>(length), second_signs = random.signs<T>(length);
    auto first = random.indices(length, length), second = random.indices(length, length);
    PairRowsPlan<T> plan{};
    plan.pair.length = length;
    plan.pair.signs_first = first_signs.data();
    plan.pair.signs_second = second_signs.data();
    plan.pair.first = first.data();
    plan.pair.second = second.data();
    plan.columns = columns;
    plan.size = length;
    plan.scale = T(0.1);
    compare<T>("pair", rows * length, [&](const Routines<T> &k, T *out) {
        Workspace space(k.pair_workspace(plan));
        k.pair(plan, {A.data(), columns}, {B.data(), columns}, {out, length}, space.share(rows));
    });
}

// Degrees 2, 3 and 4 with a shifted leaf, sampled or not, norms preserved or not.
template <class T>
void test_chain(std::size_t rows, std::size_t columns, std::size_t length, bool preserve) {
    Numbers random;
    const std::size_t n = padded(columns);
    const bool sampled = n > length;
    const std::size_t leaf = sampled ? length : n;
    auto X = random.values<T>(rows * columns);
    auto signs = random.signs<T>(columns), first_signs = random.signs<T>(length);
    auto second_signs = random.signs<T>(length), shift = random.values<T>(leaf);
    auto leaf_indices = random.indices(leaf, n);
    auto first = random.indices(length, length), second = random.indices(length, length);
    auto row_scale = random.values<T>(rows), row_shift = random.values<T>(rows);
    auto scales = random.values<double>(3 * rows);
    const auto size = std::int32_t(length), part = std::int32_t(length / 4);
    const PairStep steps[] = {{0, 0, 1, size}, {0, 1, 2, 2 * part}, {1, 1, 0, size}};
    const OutputBlock outputs[] = {
        {1, 0, part, 0, 1}, {2, part, part, part, 2}, {0, 1, part, 2 * part, 3}};
    ChainPlan<T> plan{};
    plan.columns = columns;
    plan.leaf = sampled ? Leaf::srht : Leaf::identity;
    plan.srht = srht_plan(columns, signs, leaf_indices);
    plan.leaf_length = leaf;
    plan.leaf_shift = shift.data();
    plan.pair.length = length;
    plan.pair.signs_first = first_signs.data();
    plan.pair.signs_second = second_signs.data();
    plan.pair.first = first.data();
    plan.pair.second = second.data();
    plan.steps = steps;
    plan.step_count = 3;
    plan.outputs = outputs;
    plan.output_count = 3;
    plan.register_count = 3;
    plan.preserve_norms = preserve;
    const std::size_t width = std::size_t(3 * part);
    compare<T>("chain", rows * width, [&](const Routines<T> &k, T *out) {
        Workspace space(k.chain_workspace(plan));
        const ChainRows<T> work{
            {X.data(), columns}, row_scale.data(), row_shift.data(), scales.data(), {out, width}};
        k.chain(plan, work, space.share(rows));
    });
}

template <class T> void test_scatter(std::size_t rows, std::size_t columns) {
    Numbers random;
    const std::size_t size = 37, copies = 3;
    auto X = random.values<T>(rows * columns);
    auto table = random.indices(columns * copies, 2 * size);
    const auto by_table = scatter_plan<T>(columns, size, copies, table.data(), 0);
    const auto by_hash = scatter_plan<T>(columns, size, copies, nullptr, 77);
    for (const ScatterPlan<T> *plan : {&by_table, &by_hash})
        compare<T>("scatter", rows * size, [&](const Routines<T> &k, T *out) {
            Workspace space(k.scatter_workspace(*plan));
            k.scatter(*plan, {X.data(), columns}, {out, size}, space.share(rows));
        });
}

// Sizes around the width of a tile, and more coordinates than a tile takes at once.
template <class T> void test_product(std::size_t rows, std::size_t columns, std::size_t size) {
    Numbers random;
    auto X = random.values<T>(rows * columns), matrix = random.values<T>(columns * size);
    const ProductPlan<T> plan{columns, size, matrix.data()};
    compare<T>("product", rows * size, [&](const Routines<T> &k, T *out) {
        Workspace space(k.product_workspace(plan));
        k.product(plan, {X.data(), columns}, {out, size}, space.share(rows));
    });
}

// Rows around the height of a tile, columns around whole lines, one or two weights for a row.
template <class T> void test_normal(std::size_t rows, std::size_t columns, std::size_t size) {
    Numbers random;
    auto Z = random.values<T>(rows * columns), V = random.values<T>(columns * size);
    auto offsets = random.values<double>(size), weights = random.values<double>(2 * rows);
    const std::size_t count = (columns + 1) * size;
    for (std::size_t sides : {1, 2})
        if (size % sides == 0)
            compare<T>("normal", count, [&](const Routines<T> &k, T *out) {
                std::vector<double> sums(count);
                const NormalPlan<T> plan{columns,        size,           sides,      V.data(),
                                         offsets.data(), weights.data(), sums.data()};
                Workspace space(k.normal_workspace(plan));
                k.normal(plan, {Z.data(), columns}, space.share(rows));
                for (std::size_t e = 0; e < count; ++e)
                    out[e] = T(sums[e]);
            });
}

// Values from one down to zero, and some that are not numbers.
template <class T> void test_gaussian(std::size_t rows, std::size_t columns) {
    Numbers random;
    auto products = random.values<double>(rows * columns);
    auto left = random.values<double>(rows), right = random.values<double>(columns);
    for (std::size_t i = 0; i < rows; ++i)
        left.data()[i] = i % 5 == 4 ? INFINITY : 800.0 * (left.data()[i] + 0.5);
    for (std::size_t e = 0; e < rows * columns; e += 3)
        products.data()[e] = e % 4 ? 100.0 * products.data()[e] : INFINITY;
    compare<T>("gaussian", rows * columns, [&](const Routines<T> &k, T *out) {
        const GaussianPlan plan{columns, 0.9, left.data(), right.data()};
        k.gaussian(plan, {products.data(), columns}, {out, columns}, {0, rows, nullptr});
    });
    compare<T>("gaussian in place", rows * columns, [&](const Routines<T> &k, T *out) {
        const GaussianPlan plan{columns, 0.9, left.data(), right.data()};
        for (std::size_t e = 0; e < rows * columns; ++e)
            out[e] = T(products.data()[e]);
        k.gaussian_of_own(plan, {out, columns}, {out, columns}, {0, rows, nullptr});
    });
}

// Rows with few entries take the direct path of the SRHT, the others the transform.
template <class T> void test_sparse(std::size_t rows, std::size_t columns, std::size_t entries) {
    Numbers random;
    const std::size_t n = padded(columns), size = 61;
    auto values = random.values<T>(rows * entries);
    std::vector<std::int32_t> positions(rows * entries);
    std::vector<std::int64_t> indptr(rows + 1);
    for (std::size_t i = 0; i < rows; ++i) {
        indptr[i + 1] = std::int64_t((i + 1) * entries);
        for (std::size_t e = 0; e < entries; ++e)
            positions[i * entries + e] = std::int32_t(e * columns / entries);
    }
    auto signs = random.signs<T>(columns);
    auto indices = random.indices(size, n);
    const auto plan = srht_plan(columns, signs, indices);
    const SparseRows<T, std::int32_t> input{values.data(), positions.data(), indptr.data()};
    compare<T>("sparse srht", rows * size, [&](const Routines<T> &k, T *out) {
        Workspace space(k.srht_sparse_workspace(plan));
        k.sparse32.srht(plan, input, {out, size}, space.share(rows));
    });
    const auto hashed = scatter_plan<T>(columns, size, 4, nullptr, 99);
    compare<T>("sparse scatter", rows * size, [&](const Routines<T> &k, T *out) {
        k.sparse32.scatter(hashed, input, {out, size}, {0, rows, nullptr});
    });
    auto matrix = random.values<T>(columns * size);
    compare<T>("sparse product", rows * size, [&](const Routines<T> &k, T *out) {
        k.sparse32.product({columns, size, matrix.data()}, input, {out, size}, {0, rows, nullptr});
    });
}

// A transform with tables of random numbers: no Fourier transform, but the same arithmetic.
template <class T> struct RandomTransform {
    std::vector<FftStep<T>> steps;
    std::vector<Unaligned<T>> tables;
    Unaligned<std::int32_t> positions;
    FftPlan<T> plan{};

    RandomTransform(Numbers &random, std::size_t length, const std::vector<std::size_t> &radices)
        : positions(length % 2 ? length : length / 2) {
        const std::size_t count = positions.size();
        std::size_t span = 1;
        for (std::size_t radix : radices)
            span *= radix;
        plan.length = length;
        plan.count = count;
        plan.step_count = radices.size();
        plan.positions = positions.data();
        const auto table = [&](std::size_t numbers) {
            tables.push_back(random.values<T>(2 * numbers));
            return tables.back().data();
        };
        for (std::size_t radix : radices) {
            span /= radix;
            const T *roots = table(radix);
            steps.push_back({radix, span, roots, table((span - 1) * (radix - 1))});
        }
        plan.steps = steps.data();
        plan.roots = table(count / 2 + 1);
        for (std::size_t k = 0; k < count; ++k)
            positions.data()[k] = std::int32_t(count - 1 - k);
    }
};

// Degrees 3 and 1 of dense rows, hashed or by table, and of sparse ones.
template <class T>
void test_tensor(std::size_t rows, std::size_t columns, std::size_t length,
                 const std::vector<std::size_t> &radices) {
    Numbers random;
    RandomTransform<T> transform(random, length, radices);
    const FftPlan<T> &fft = transform.plan;
    auto X = random.values<T>(rows * columns), shifts = random.values<T>(4 * length);
    auto row_scale = random.values<T>(rows), row_shift = random.values<T>(rows);
    auto scales = random.values<double>(2 * rows);
    const std::uint64_t keys[] = {1, 22, 333, 4444};
    std::vector<std::int32_t> tables(4 * columns);
    for (std::size_t t = 0; t < 4; ++t)
        of<T>(*kSets[t % 3])
            .tabulate(scatter_plan<T>(columns, length, 1, nullptr, keys[t]),
                      tables.data() + t * columns);
    std::vector<std::int64_t> indptr(rows + 1);
    std::vector<std::int32_t> positions(rows * columns);
    for (std::size_t e = 0; e < rows * columns; ++e) {
        positions[e] = std::int32_t(e % columns);
        indptr[e / columns + 1] = std::int64_t(e + 1);
    }
    const SparseRows<T, std::int32_t> sparse{X.data(), positions.data(), indptr.data()};
    for (const bool tabulated : {false, true})
        for (const bool dense : {false, true}) {
            const std::int32_t *table = tabulated ? tables.data() : nullptr;
            const TensorBlock<T> blocks[] = {{3, length, length, &fft, keys, table, shifts.data()},
                                             {1, length, 0, &fft, keys + 3,
                                              table ? table + 3 * columns : nullptr,
                                              shifts.data() + 3 * length}};
            const TensorPlan<T> plan{columns, blocks, 2, fft.count, !tabulated};
            compare<T>("tensor", rows * 2 * length, [&](const Routines<T> &k, T *out) {
                Workspace space(k.tensor_workspace(plan));
                const ChainRows<T> work{{X.data(), columns},
                                        row_scale.data(),
                                        row_shift.data(),
                                        scales.data(),
                                        {out, 2 * length}};
                if (dense)
                    k.tensor(plan, work, space.share(rows));
                else
                    k.sparse32.tensor(plan, sparse, work, space.share(rows));
            });
        }
}

template <class T> void test_all() {
    for (std::size_t rows : {1, 2, 5, 8, 17, 33})
        for (std::size_t columns : {1, 3, 8, 61, 300, 1025}) {
            test_transforms<T>(rows, columns);
            test_projections<T>(rows, columns, 77);
            test_gaussian<T>(rows, columns);
        }
    test_transforms<T>(3, 8200);
    test_transforms<T>(2, 70000);
    test_projections<T>(3, 8200, 100);
    test_projections<T>(21, 5, 1);
    for (std::size_t rows : {1, 31, 33, 70})
        for (std::size_t columns : {1, 16, 64, 300, 1025})
            for (std::size_t size : {1, 4, 10})
                test_normal<T>(rows, columns, size);
    for (std::size_t rows : {1, 7, 16, 21}) {
        test_pairs<T>(rows, 64, 50);
        test_pairs<T>(rows, 4, 3);
        test_scatter<T>(rows, 131);
        test_product<T>(rows, 300, 131);
        test_product<T>(rows, 0, 5);
        test_sparse<T>(rows, 3000, 5);
        test_sparse<T>(rows, 500, 250);
        test_tensor<T>(rows, 50, 1, {});
        test_tensor<T>(rows, 5, 2, {});
        test_tensor<T>(rows, 50, 48, {3, 2, 4});
        test_tensor<T>(rows, 131, 450, {3, 3, 5, 5});
        test_tensor<T>(rows, 4200, 256, {2, 4, 4, 4});
        test_tensor<T>(rows, 50, 75, {3, 5, 5});
        for (bool preserve : {false, true}) {
            test_chain<T>(rows, 5, 64, preserve);
            test_chain<T>(rows, 64, 64, preserve);
            test_chain<T>(rows, 300, 64, preserve);
            test_chain<T>(rows, 9000, 128, preserve);
        }
    }
    test_pairs<T>(2, 8192, 8000);
    test_chain<T>(2, 70000, 8192, true);
}

} // namespace

int main() {
    test_all<float>();
    test_all<double>();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
