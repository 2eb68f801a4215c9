#include <nccl.h>

#include <chrono>
#include <thread>

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/mutex.h"
#include "muster/core/tensor/device_copies.h"

// Note [NCCL only copies]
// NCCL's own all-reduce chooses rings, trees or switches by size and machine, so the order of additions would
// be unknown. We use only its sends and receives as a transport; our own kernels add each slice in a fixed
// order. The number of bytes sent is the same as in a ring.

namespace muster::cuda {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;  // time limit for connecting communicators
constexpr auto kSpin = 200us;    // as long polls follow each other: most calls end sooner
constexpr auto kNap = 20us;      // between two later polls, about 75 with the system's timers
constexpr int kOldest = 22200;   // the first version that aborts the communicators of a group together

#define MUSTER_NCCL_FUNCTIONS(FUNCTION) \
  FUNCTION(ncclCommAbort)               \
  FUNCTION(ncclCommDestroy)             \
  FUNCTION(ncclCommFinalize)            \
  FUNCTION(ncclCommGetAsyncError)       \
  FUNCTION(ncclCommInitRankConfig)      \
  FUNCTION(ncclGetErrorString)          \
  FUNCTION(ncclGetUniqueId)             \
  FUNCTION(ncclGetVersion)              \
  FUNCTION(ncclGroupEnd)                \
  FUNCTION(ncclGroupStart)              \
  FUNCTION(ncclRecv)                    \
  FUNCTION(ncclSend)

struct NcclLibrary {
#define MUSTER_TABLE_MEMBER(function) decltype(&::function) function = nullptr;
  MUSTER_NCCL_FUNCTIONS(MUSTER_TABLE_MEMBER)
#undef MUSTER_TABLE_MEMBER
};

NcclLibrary loadNccl() {
  const char* const name = "libnccl.so.2";
  void* const library = openLibrary(name, MUSTER_NCCL_DIRECTORY);
  NcclLibrary table;
#define MUSTER_FIND(function) \
  table.function = reinterpret_cast<decltype(table.function)>(functionOf(library, name, #function));
  MUSTER_NCCL_FUNCTIONS(MUSTER_FIND)
#undef MUSTER_FIND
  int version = 0;
  if (table.ncclGetVersion(&version) != ncclSuccess || version < kOldest)
    throw DeviceUnavailable(fmt::format("NCCL: version {} is older than {}", version, kOldest));
  return table;
}

/// @throws DeviceUnavailable naming what is missing.
const NcclLibrary& nccl() {
  static const NcclLibrary library = loadNccl();
  return library;
}

/// Accepts calls in progress; `await` waits for them.
void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw DeviceFailure(fmt::format("NCCL says {} ({}), in {}", static_cast<int>(result),
                                  nccl().ncclGetErrorString(result), call));
}

#define MUSTER_NCCL_CHECK(call) check((call), #call)

/// Groups the calls, so that NCCL starts them together. Ends the group even if a call throws.
template <typename Calls>
void inGroup(Calls calls) {
  MUSTER_NCCL_CHECK(nccl().ncclGroupStart());
  try {
    calls();
  } catch (...) {
    static_cast<void>(nccl().ncclGroupEnd());
    throw;
  }
  MUSTER_NCCL_CHECK(nccl().ncclGroupEnd());
}

class NcclCopies final : public DeviceCopies {
 public:
  explicit NcclCopies(std::vector<Context*> contexts)
      : contexts_(std::move(contexts)), communicators_(contexts_.size()) {
    try {
      Lock lock(mutex_);
      connect();
      await(lock, std::chrono::steady_clock::now() + kPatience);
    } catch (...) {
      abort();
      throw;
    }
  }

  ~NcclCopies() override {
    try {
      Lock lock(mutex_);
      if (aborted_) return;
      inGroup([&] {
        for (auto* const communicator : communicators_)
          MUSTER_NCCL_CHECK(nccl().ncclCommFinalize(communicator));
      });
      await(lock, std::chrono::steady_clock::now() + kPatience);
      aborted_ = true;  // even if a call below fails
      forEach([](ncclComm_t communicator) { MUSTER_NCCL_CHECK(nccl().ncclCommDestroy(communicator)); });
    } catch (const std::exception& error) {
      logWarning("{}", error.what());
      abort();
    }
  }

  void run(std::span<const Transfer> transfers) override {
    Lock lock(mutex_);
    requireAlive();
    inGroup([&] {
      for (const auto& [from, to, source, target] : transfers) {
        const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
        MUSTER_NCCL_CHECK(nccl().ncclSend(source.raw(), source.bytes(), ncclUint8, to, communicators_[f],
                                          streamOf(*contexts_[f])));
        MUSTER_NCCL_CHECK(nccl().ncclRecv(target.raw(), target.bytes(), ncclUint8, from, communicators_[t],
                                          streamOf(*contexts_[t])));
      }
    });
    await(lock, std::chrono::steady_clock::time_point::max());
  }

  void abort() noexcept override {
    try {
      const Lock lock(mutex_);
      if (std::exchange(aborted_, true)) return;
      // In one group: the abort of one communicator may wait for its device, which waits for the next one.
      inGroup([&] {
        forEach([](ncclComm_t communicator) { MUSTER_NCCL_CHECK(nccl().ncclCommAbort(communicator)); });
      });
    } catch (const std::exception& error) {
      logWarning("{}", error.what());
    }
  }

 private:
  /// Calls for all communicators, even if one call throws. @throws the first exception.
  template <typename Call>
  void forEach(Call call) MUSTER_REQUIRES(mutex_) {
    std::exception_ptr first;
    for (auto* const communicator : communicators_) try {
        if (communicator) call(communicator);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
  }

  static cudaStream_t streamOf(Context& context) { return stateOf(context).stream(); }

  void connect() MUSTER_REQUIRES(mutex_) {
    ncclUniqueId id;
    MUSTER_NCCL_CHECK(nccl().ncclGetUniqueId(&id));
    const int ranks = static_cast<int>(contexts_.size());
    inGroup([&] {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        const DeviceGuard current(contexts_[r]->device().index());  // stays the rank's device
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        MUSTER_NCCL_CHECK(nccl().ncclCommInitRankConfig(&communicators_[r], ranks, id, rank, &config));
      }
    });
  }

  /// Polls until NCCL has accepted the call; meanwhile other threads may abort the communicators.
  void await(Lock& lock, std::chrono::steady_clock::time_point deadline) MUSTER_REQUIRES(mutex_) {
    const auto spinUntil = std::chrono::steady_clock::now() + kSpin;
    for (auto* const& communicator : communicators_)
      for (;;) {
        requireAlive();
        ncclResult_t state = ncclSuccess;
        MUSTER_NCCL_CHECK(nccl().ncclCommGetAsyncError(communicator, &state));
        check(state, "an exchange between GPUs");
        if (state == ncclSuccess) break;
        const auto now = std::chrono::steady_clock::now();
        if (now > deadline) throw DeviceFailure("NCCL: the GPUs' communicators did not connect");
        lock.native().unlock();
        now < spinUntil ? std::this_thread::yield() : std::this_thread::sleep_for(kNap);
        lock.native().lock();
      }
  }

  void requireAlive() const MUSTER_REQUIRES(mutex_) {
    if (aborted_) throw DeviceFailure("NCCL: the exchange between GPUs was aborted after a failure");
  }

  const std::vector<Context*> contexts_;
  Mutex mutex_;
  std::vector<ncclComm_t>
      communicators_;  // [rank] guarded by mutex_; used in lambdas, which Clang cannot check
  bool aborted_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::string whyNoNccl() {
  try {
    nccl();
    return {};
  } catch (const DeviceUnavailable& error) {
    return error.what();
  }
}

std::unique_ptr<DeviceCopies> makeNcclCopies(std::vector<Context*> contexts) {
  return std::make_unique<NcclCopies>(std::move(contexts));
}

}  // namespace muster::cuda
