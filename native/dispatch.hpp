// Chooses the instruction set at run time.
#pragma once
#include "routine_table.hpp"
#include <string>
#include <vector>

namespace powersketch {

// What this build and this processor can run, plainest first.
std::vector<std::string> available_instruction_sets();
// The one in use: the best available, unless POWERSKETCH_SIMD names another.
const InstructionSet &instruction_set();
// Throws std::invalid_argument for a name that is not available.
void select_instruction_set(const std::string &name);

template <class T> const Routines<T> &routines_for();
template <> inline const Routines<float> &routines_for<float>() { return instruction_set().single; }
template <> inline const Routines<double> &routines_for<double>() { return instruction_set().full; }

} // namespace powersketch
