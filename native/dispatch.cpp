#include "dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

namespace powersketch {
namespace {

std::vector<const InstructionSet *> runnable() {
    std::vector<const InstructionSet *> sets{&baseline_instructions()};
#ifdef POWERSKETCH_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        sets.push_back(&avx2_instructions());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        sets.push_back(&avx512_instructions());
#endif
    return sets;
}

const InstructionSet *find(const std::string &name) {
    std::string known;
    for (const InstructionSet *set : runnable()) {
        if (name == set->name)
            return set;
        known += std::string(known.empty() ? "" : ", ") + set->name;
    }
    throw std::invalid_argument("instruction set '" + name +
                                "' is not available here; use one of: " + known +
                                " (or, in POWERSKETCH_SIMD, numpy)");
}

const InstructionSet *initial() {
    const char *wish = std::getenv("POWERSKETCH_SIMD");
    return wish && *wish ? find(wish) : runnable().back();
}

std::atomic<const InstructionSet *> &current() {
    static std::atomic<const InstructionSet *> chosen{initial()};
    return chosen;
}

} // namespace

std::vector<std::string> available_instruction_sets() {
    std::vector<std::string> names;
    for (const InstructionSet *set : runnable())
        names.emplace_back(set->name);
    return names;
}

const InstructionSet &instruction_set() { return *current().load(); }

void select_instruction_set(const std::string &name) { current().store(find(name)); }

} // namespace powersketch
