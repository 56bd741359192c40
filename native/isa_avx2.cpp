#define PS_NAME "avx2"
#define PS_ENTRY avx2_instructions
#define PS_VECTOR_BYTES 32
#include "routines.hpp"
