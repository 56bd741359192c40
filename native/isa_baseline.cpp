#define PS_NAME "baseline"
#define PS_ENTRY baseline_instructions
#define PS_VECTOR_BYTES 16
#include "routines.hpp"
