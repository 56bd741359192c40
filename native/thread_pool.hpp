// A small persistent pool of threads that survives fork, and scratch memory per thread.
#pragma once
#include <cstddef>
#include <functional>

namespace powersketch {

// Calls body(chunk) for every chunk in 0 .. chunks, on at most `threads` threads, the caller's
// included. An exception thrown by a body is thrown again to the caller.
void parallel_for(std::size_t chunks, std::size_t threads,
                  const std::function<void(std::size_t)> &body);

// This thread's scratch memory, 64-byte aligned; kept and grown, valid until the next call.
char *thread_workspace(std::size_t bytes);

} // namespace powersketch
