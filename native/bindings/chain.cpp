// PowerChain: Algorithm 1 and its relatives, made ready for one dtype.
#include "plans.hpp"

namespace powersketch {
namespace {

// An attribute of a specification. Arrays must have exactly this type, numbers may be NumPy's.
template <class A> A field(nb::handle spec, const char *name) {
    A value{};
    if (!nb::try_cast<A>(spec.attr(name), value, std::is_arithmetic_v<A>))
        throw nb::type_error((std::string("PowerChain: wrong type of ") + name).c_str());
    return value;
}

using Signs = Vector<std::int8_t>;
using Indices = Vector<std::int32_t>;
using Table = Matrix<std::int32_t>;

// Owns the arrays of a ChainPlan, copied by name from a ChainSpec (routines/specs.py).
template <class T> class PowerChain {
public:
    explicit PowerChain(nb::handle spec) {
        set_pair(spec.attr("pair"));
        set_leaf(spec);
        set_program(field<Table>(spec, "steps"), field<Table>(spec, "outputs"),
                    field<std::size_t>(spec, "registers"));
        plan_.preserve_norms = field<bool>(spec, "preserve_norms");
    }
    PowerChain(const PowerChain &) = delete; // the plan points into it
    PowerChain &operator=(const PowerChain &) = delete;

    bool apply(Matrix<T> X, Vector<T> row_scale, Vector<T> row_shift, Matrix<double> block_scales,
               Output<T> out, std::size_t threads) const {
        const std::size_t rows = X.shape(0);
        require(X.shape(1) == plan_.columns && row_scale.shape(0) == rows &&
                    row_shift.shape(0) == (plan_.leaf_shift ? rows : 0) &&
                    block_scales.shape(0) == rows && block_scales.shape(1) == plan_.output_count &&
                    out.shape(0) == rows && out.shape(1) >= width_,
                "PowerChain: wrong shapes");
        require_apart(X, out);
        require_apart(block_scales, out);
        ChainRows<T> work{};
        work.input = rows_of<T>(X);
        work.row_scale = row_scale.data();
        work.row_shift = row_shift.data();
        work.block_scales = block_scales.data();
        work.output = rows_of<T>(out);
        const auto &routines = routines_for<T>();
        return all_rows(rows, threads, routines.chain_workspace(plan_),
                        [&](Share share) { return routines.chain(plan_, work, share); });
    }

private:
    void set_pair(nb::handle pair) {
        const auto signs_first = field<Signs>(pair, "signs_first");
        const auto signs_second = field<Signs>(pair, "signs_second");
        const auto first = field<Indices>(pair, "first"), second = field<Indices>(pair, "second");
        plan_.pair = pair_plan<T>(signs_first.shape(0), signs_second.shape(0), first, second);
        plan_.pair.signs_first = keep(signs_first_, signs_first);
        plan_.pair.signs_second = keep(signs_second_, signs_second);
        plan_.pair.first = keep(first_, first);
        plan_.pair.second = keep(second_, second);
    }

    void set_leaf(nb::handle spec) {
        plan_.columns = field<std::size_t>(spec, "columns");
        plan_.leaf_length = field<std::size_t>(spec, "leaf_length");
        require(is_power_of_two(plan_.leaf_length) && plan_.leaf_length <= plan_.pair.length,
                "PowerChain: the leaf's length must be a power of two, at most the pair sketch's");
        const auto shift = field<Vector<double>>(spec, "leaf_shift");
        require(shift.size() == 0 || shift.size() == plan_.leaf_length,
                "PowerChain: leaf_shift must be empty or have the leaf's length");
        if (shift.size())
            plan_.leaf_shift = keep(leaf_shift_, shift);
        const nb::object leaf = spec.attr("leaf");
        if (leaf.is_none())
            set_identity();
        else if (nb::hasattr(leaf, "table"))
            set_scatter(leaf);
        else
            set_srht(leaf);
    }

    void set_identity() {
        plan_.leaf = Leaf::identity;
        require(plan_.columns <= plan_.leaf_length,
                "PowerChain: an identity leaf is as long as its input");
    }

    // Sketches may have further columns, which rows do not reach.
    void set_srht(nb::handle leaf) {
        const auto signs = field<Signs>(leaf, "signs");
        const auto indices = field<Indices>(leaf, "indices");
        plan_.leaf = Leaf::srht;
        plan_.srht =
            srht_plan<T>(plan_.columns, std::min(signs.size(), plan_.columns),
                         field<std::size_t>(leaf, "padded"), indices, field<double>(leaf, "scale"));
        require(plan_.srht.size == plan_.leaf_length,
                "PowerChain: the leaf samples leaf_length rows");
        plan_.srht.signs = keep(leaf_signs_, signs);
        plan_.srht.indices = keep(leaf_indices_, indices);
    }

    void set_scatter(nb::handle leaf) {
        const auto table = field<Table>(leaf, "table");
        const auto size = field<std::size_t>(leaf, "size");
        require(
            table.shape(0) >= plan_.columns && size >= 1 && size <= plan_.leaf_length,
            "PowerChain: the leaf's table has one row per column and at most leaf_length buckets");
        plan_.leaf = Leaf::scatter;
        plan_.buckets = scatter_plan<T>(plan_.columns, size, table.shape(1),
                                        keep(leaf_table_, table), field<double>(leaf, "scale"));
    }

    // `steps` has rows (left, right, target, size), `outputs` (source, start, size, offset, after).
    void set_program(const Table &steps, const Table &outputs, std::size_t registers) {
        require(steps.shape(1) == 4 && outputs.shape(1) == 5 && registers >= 1 &&
                    registers <= kMaxRegisters,
                "PowerChain: steps have 4 columns, outputs 5, registers number 1 to 64");
        // How much of every register is filled, step by step: nothing else may be read.
        std::vector<std::size_t> filled(registers, 0);
        filled[0] = plan_.leaf_length;
        std::size_t block = 0;
        for (std::size_t s = 0; s <= steps.shape(0); ++s) {
            if (s > 0)
                add_step(steps.data() + 4 * (s - 1), filled);
            for (; block < outputs.shape(0) && outputs.data()[5 * block + 4] == std::int32_t(s);
                 ++block)
                add_output(outputs.data() + 5 * block, filled);
        }
        require(block == outputs.shape(0),
                "PowerChain: an output block lies outside its register or out of order");
        plan_.steps = steps_.data();
        plan_.step_count = steps_.size();
        plan_.outputs = outputs_.data();
        plan_.output_count = outputs_.size();
        plan_.register_count = registers;
    }

    void add_step(const std::int32_t *row, std::vector<std::size_t> &filled) {
        for (int c = 0; c < 3; ++c)
            require(row[c] >= 0 && std::size_t(row[c]) < filled.size(),
                    "PowerChain: a step names no register");
        for (int c = 0; c < 2; ++c)
            require(filled[row[c]] == (is_leaf(row[c]) ? plan_.leaf_length : plan_.pair.length),
                    "PowerChain: a step reads a register that is not filled");
        require(row[3] >= 1 && std::size_t(row[3]) <= std::min(first_.size(), plan_.pair.length),
                "PowerChain: a step asks for more rows than the pair sketch has");
        filled[row[2]] = std::size_t(row[3]);
        if (row[2] == 0)
            leaf_overwritten_ = true;
        steps_.push_back({row[0], row[1], row[2], row[3]});
    }

    void add_output(const std::int32_t *row, const std::vector<std::size_t> &filled) {
        require(row[0] >= 0 && std::size_t(row[0]) < filled.size() && row[1] >= 0 && row[2] >= 1 &&
                    row[3] >= 0 && std::size_t(row[1]) + std::size_t(row[2]) <= filled[row[0]],
                "PowerChain: an output block lies outside its register or out of order");
        outputs_.push_back({row[0], row[1], row[2], row[3], row[4]});
        width_ = std::max(width_, std::size_t(row[3]) + std::size_t(row[2]));
    }

    bool is_leaf(std::int32_t which) const { return which == 0 && !leaf_overwritten_; }

    template <class E, class A> static const E *keep(std::vector<E> &kept, const A &array) {
        kept.assign(array.data(), array.data() + array.size());
        return kept.data();
    }

    bool leaf_overwritten_ = false;
    ChainPlan<T> plan_{};
    std::vector<T> leaf_signs_, leaf_shift_, signs_first_, signs_second_;
    std::vector<std::int32_t> leaf_indices_, leaf_table_, first_, second_;
    std::vector<PairStep> steps_;
    std::vector<OutputBlock> outputs_;
    std::size_t width_ = 0;
};

template <class T> void bind_type(nb::module_ &m, const char *name) {
    nb::class_<PowerChain<T>>(m, name)
        .def(nb::init<nb::handle>(), "spec"_a)
        .def("apply", &PowerChain<T>::apply, "X"_a.noconvert(), "row_scale"_a.noconvert(),
             "row_shift"_a.noconvert(), "block_scales"_a.noconvert(), "out"_a.noconvert(),
             "threads"_a);
}

} // namespace

void bind_chain(nb::module_ &m) {
    bind_type<float>(m, "PowerChain32");
    bind_type<double>(m, "PowerChain64");
}

} // namespace powersketch
