#include "muster/core/data/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"
#include "muster/core/base/start_thread.h"
#include "muster/core/device/device.h"

namespace muster {
namespace {

/// Indices to work on, taken in order by several threads.
class Indices {
 public:
  explicit Indices(std::size_t count) : count_(count) {}

  /// Works until none is left, or one has failed: all smaller ones have been taken by then.
  void work(const std::function<void(std::size_t)>& work) noexcept {
    for (std::size_t i; (i = next_.fetch_add(1)) < count_;) try {
        work(i);
      } catch (...) {
        next_ = count_;
        fail(i, std::current_exception());
      }
  }

  void rethrow() {
    const Lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(std::size_t index, std::exception_ptr failure) {
    const Lock lock(mutex_);
    if (failure_ && failed_ < index) return;
    failed_ = index;
    failure_ = std::move(failure);
  }

  std::size_t count_;
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  std::size_t failed_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

void inParallel(std::size_t count, const std::function<void(std::size_t)>& work, int threads) {
  const auto most =
      threads > 0 ? static_cast<std::size_t>(threads) : std::max<std::size_t>(availableCores().size(), 1);
  Indices indices(count);
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(most, count); ++t) try {
        others.push_back(startThread("a reader", [&] { indices.work(work); }));
      } catch (const Error&) {
        break;  // the system refuses more threads; those that run do all of it
      }
    indices.work(work);
  }
  indices.rethrow();
}

}  // namespace muster
