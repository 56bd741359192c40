#include "dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#ifdef POWERSKETCH_X86
#include <cpuid.h>
#endif

namespace powersketch {
namespace {

#ifdef POWERSKETCH_X86
// What the processor has and the operating system saves. __builtin_cpu_supports would say the same,
// but its table is part of a library that not every compiler brings.
struct Processor {
    bool avx2 = false;
    bool avx512 = false;

    Processor() {
        unsigned eax, ebx, ecx, edx;
        if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & bit_OSXSAVE) == 0)
            return;
        const unsigned saved = saved_registers();
        if ((saved & kVectors) != kVectors || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
            return;
        avx2 = (ebx & bit_AVX2) != 0;
        constexpr unsigned kParts = bit_AVX512F | bit_AVX512VL | bit_AVX512BW | bit_AVX512DQ;
        avx512 = (ebx & kParts) == kParts && (saved & kWideVectors) == kWideVectors;
    }

private:
    static constexpr unsigned kVectors = 0x06;     // XMM and YMM
    static constexpr unsigned kWideVectors = 0xe0; // masks, ZMM, the upper sixteen

    static unsigned saved_registers() {
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return low;
    }
};
#endif

std::vector<const InstructionSet *> runnable() {
    std::vector<const InstructionSet *> sets{&baseline_instructions()};
#ifdef POWERSKETCH_X86
    const Processor processor;
    if (processor.avx2)
        sets.push_back(&avx2_instructions());
    if (processor.avx512)
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
