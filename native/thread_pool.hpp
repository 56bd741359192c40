// A small persistent pool of threads that survives fork, and scratch memory per thread.
#pragma once
#include <cstddef>
#include <functional>

namespace powersketch {

// How many threads a loop may have at most, whatever is asked for: four for every processor.
// Threads stay until the process ends, and more of them would only take turns.
std::size_t most_threads();

// Calls body(chunk) for every chunk in 0 .. chunks, on at most `threads` threads, the caller's
// included, and on fewer where the system gives no more. An exception thrown by a body is thrown
// again to the caller.
void parallel_for(std::size_t chunks, std::size_t threads,
                  const std::function<void(std::size_t)> &body);

// This thread's scratch memory, 64-byte aligned; kept and grown, valid until the next call.
char *thread_workspace(std::size_t bytes);

} // namespace powersketch
