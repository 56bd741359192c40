#include "thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace powersketch {
namespace {

// One parallel loop: whoever has time takes the next chunk.
struct Loop {
    Loop(std::size_t n, const std::function<void(std::size_t)> &f) : chunks(n), body(f) {}

    void work() {
        for (std::size_t chunk; (chunk = next.fetch_add(1)) < chunks;) {
            try {
                body(chunk);
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex);
                if (!error)
                    error = std::current_exception();
            }
            const std::lock_guard<std::mutex> lock(mutex);
            if (++finished == chunks)
                all_done.notify_all();
        }
    }

    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        all_done.wait(lock, [this] { return finished == chunks; });
        if (error)
            std::rethrow_exception(error);
    }

    const std::size_t chunks;
    const std::function<void(std::size_t)> &body; // outlives the loop: the caller waits
    std::atomic<std::size_t> next{0};
    std::size_t finished = 0;
    std::exception_ptr error;
    std::mutex mutex;
    std::condition_variable all_done;
};

class Pool {
public:
    // Helpers that the system gives no thread for are missed by nobody: the caller works, too.
    void invite(const std::shared_ptr<Loop> &loop, std::size_t helpers) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (workers_ < helpers && add_worker())
                ++workers_;
            for (std::size_t i = 0; i < std::min(helpers, workers_); ++i)
                invitations_.push_back(loop);
        }
        available_.notify_all();
    }

private:
    bool add_worker() {
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::system_error &) {
            return false;
        }
        return true;
    }

    void serve() {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            available_.wait(lock, [this] { return !invitations_.empty(); });
            const std::shared_ptr<Loop> loop = invitations_.front();
            invitations_.pop_front();
            lock.unlock();
            loop->work();
        }
    }

    std::mutex mutex_;
    std::condition_variable available_;
    std::deque<std::shared_ptr<Loop>> invitations_;
    std::size_t workers_ = 0;
};

// Never destroyed: its threads sleep until the process ends. A forked child has none of the
// parent's threads, so it starts a pool of its own and leaves the parent's untouched.
std::atomic<Pool *> current_pool{nullptr};

Pool &pool() {
    static const int registered = [] {
#if defined(__unix__) || defined(__APPLE__)
        pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); });
#endif
        return 0;
    }();
    (void)registered;
    Pool *existing = current_pool.load();
    if (existing)
        return *existing;
    auto *fresh = new Pool;
    if (current_pool.compare_exchange_strong(existing, fresh))
        return *fresh;
    delete fresh;
    return *existing;
}

struct Workspace {
    char *memory = nullptr;
    std::size_t size = 0;
    ~Workspace() { std::free(memory); }
};

} // namespace

std::size_t most_threads() {
    static const std::size_t most = 4 * std::max(std::thread::hardware_concurrency(), 1u);
    return most;
}

void parallel_for(std::size_t chunks, std::size_t threads,
                  const std::function<void(std::size_t)> &body) {
    threads = std::min({threads, chunks, most_threads()});
    if (threads <= 1) {
        for (std::size_t chunk = 0; chunk < chunks; ++chunk)
            body(chunk);
        return;
    }
    const auto loop = std::make_shared<Loop>(chunks, body);
    pool().invite(loop, threads - 1);
    loop->work();
    loop->wait();
}

char *thread_workspace(std::size_t bytes) {
    thread_local Workspace workspace;
    if (workspace.size < bytes) {
        std::free(workspace.memory);
        workspace.size = 0;
        workspace.memory = static_cast<char *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
        if (!workspace.memory)
            throw std::bad_alloc();
        workspace.size = bytes;
    }
    return workspace.memory;
}

} // namespace powersketch
