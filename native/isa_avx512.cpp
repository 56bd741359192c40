#define PS_NAME "avx512"
#define PS_ENTRY avx512_instructions
#define PS_VECTOR_BYTES 64
#include "routines.hpp"
