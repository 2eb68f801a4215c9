#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/device/affinity.h"
#include "muster/core/device/core_claim.h"
#include "muster/core/device/device.h"
#include "muster/core/device/peers.h"

namespace muster {

/// Work enqueued on one stream runs in order. Events order the work of two streams. On the CPU all work is
/// done when a call returns.
enum class Stream {
  Compute,  ///< operations run here
  Copy,     ///< copies that overlap with operations
};

/// How matrix products and convolutions multiply float32 numbers; sums are always in float32.
enum class MathMode {
  Float32,        ///< factors are not rounded
  TensorFloat32,  ///< factors are rounded to 10 bits of mantissa (GPUs from compute capability 8.0 on)
  BFloat16,       ///< factors are rounded to 7 bits (the same GPUs and some CPUs, see math_mode.h)
};

template <>
struct EnumNames<MathMode> {
  static constexpr std::array<std::pair<MathMode, std::string_view>, 3> kNames{{
      {MathMode::Float32, "fp32"},
      {MathMode::TensorFloat32, "tf32"},
      {MathMode::BFloat16, "bf16"},
  }};
};

namespace detail {
/// Library handles and streams of one backend; each backend derives its own.
struct BackendState {
  virtual ~BackendState() = default;
  virtual MathMode mathMode() const { return MathMode::Float32; }
  virtual void synchronize() {}
  virtual void prepareSideStream() {}
  /// Operations enqueued between begin and end go to the side stream.
  virtual void beginSideStream() {}
  virtual void endSideStream() {}
  /// Operations enqueued from now on wait for the side stream.
  virtual void joinSideStream() {}
};
class BackendEvent;
class BackendGraph;
}  // namespace detail

namespace cpu {
std::unique_ptr<detail::BackendState> makeState();
}
/// Options of a Context.
struct ContextOptions {
  /// Threads that one operation uses on the CPU; at least 1.
  int threads = 1;
  /// The constructing thread, and the threads its operations start, are pinned to these cores while the
  /// context lives; empty: not pinned. Workers that are pinned later avoid them, in other processes, too.
  std::vector<int> cores = {};
  /// Empty: TensorFloat32 on a GPU that has it, else Float32.
  std::optional<MathMode> mathMode = {};
  /// Whether matrix products and convolutions run here. If not (a context for copies and merges), a GPU's
  /// context creates no library handles and no workspace.
  bool layers = true;
};

/// A device with the library handles and the thread budget that one thread computes with. A worker creates
/// and destroys its context on its own thread; one thread at a time uses it.
///
/// Work on the CPU is done when a call returns. Work on a GPU is enqueued on the context's streams, which are
/// independent of other contexts' streams. If it fails, a later call throws DeviceFailure, at the latest the
/// call that waits for it. After a fault in a kernel every later call on that GPU throws DeviceFailure, in
/// every context of the process.
class Context {
 public:
  /// @throws InvalidArgument if threads < 1, if the calling thread may not use one of the cores, or if
  ///         `device` does not have the math mode; DeviceUnavailable if this build or this machine does not
  ///         have `device`; Error if the system refuses one of the threads; InvalidArgument with several
  ///         threads in a child of fork(), if the thread that called fork() had used several: the child does
  ///         not have them.
  explicit Context(Device device = Device::cpu(), ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device device() const { return device_; }
  int threads() const { return options_.threads; }
  const std::vector<int>& cores() const { return options_.cores; }

  MathMode mathMode() const { return backend_->mathMode(); }

  /// Waits until all streams have done what is enqueued on them. Returns at once on the CPU.
  /// @throws DeviceFailure if some of the work failed.
  void synchronize();

  /// The other workers of the training; nullptr if this context trains alone.
  Peers* peers() const { return peers_; }
  /// @param peers  must outlive their use here; nullptr: none.
  void setPeers(Peers* peers) { peers_ = peers; }

  /// Creates the side stream and its workspace; without this call all work goes to the compute stream.
  /// Allocates; call it when planning.
  void prepareSideStream() { backend_->prepareSideStream(); }
  /// Calls `work`; its operations go to the side stream if a `SideStreamScope` permits it.
  template <typename Work>
  void onSideStream(Work&& work) {
    if (!sideStreamAllowed_) return work();
    backend_->beginSideStream();
    try {
      work();
    } catch (...) {
      backend_->endSideStream();
      throw;
    }
    backend_->endSideStream();
  }

  /// For backends only.
  detail::BackendState& backend() { return *backend_; }

 private:
  friend class SideStreamScope;

  Device device_;
  ContextOptions options_;
  ThreadPin pin_;
  CoreClaim claim_;  // of the cores that are free: those of a worker are claimed by its wrapper
  std::unique_ptr<detail::BackendState> backend_;
  Peers* peers_ = nullptr;
  int sideStreamScopes_ = 0;
  bool sideStreamAllowed_ = false;
};

/// While it lives, the calling thread's operations use `context`'s number of threads (a setting of the
/// thread). Models open one around each step; a program that calls ops directly opens one too.
class ContextScope {
 public:
  /// @throws InvalidArgument as Context does, in a child of fork().
  explicit ContextScope(Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  int threadsBefore_;
};

/// While it lives, `Context::onSideStream` may enqueue work on the context's side stream. That work waits for
/// the work enqueued before it; the compute stream waits for it only at the end of the scope. So neither may
/// write memory that the other uses. On a GPU the side stream fills multiprocessors that one operation leaves
/// idle. On the CPU, and inside another scope of the same context, all work stays in order. May be recorded.
class SideStreamScope {
 public:
  explicit SideStreamScope(Context& context);
  /// Joins unless `join` was called; a failure is logged.
  ~SideStreamScope();
  SideStreamScope(const SideStreamScope&) = delete;
  SideStreamScope& operator=(const SideStreamScope&) = delete;
  /// Whether `Context::onSideStream` uses the side stream from now on; initially it does not. Not after
  /// `join`.
  void permit(bool allowed) { context_->sideStreamAllowed_ = allowed && outer_; }
  void join();

 private:
  Context* context_;
  bool outer_, before_;
};

/// A point in a stream's work that threads and other streams can wait for. Complete until it is recorded, and
/// always on the CPU. Move-only. Belongs to the device of its context; may be destroyed while a stream waits
/// for it.
class Event {
 public:
  Event();
  /// For work of `context`. Allocates; create it when planning, record it in steps.
  explicit Event(Context& context);
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// Marks the end of the work enqueued on `stream` so far. `context` is on the event's device.
  void record(Context& context, Stream stream = Stream::Compute);
  /// @throws DeviceFailure if the device has failed; so does `wait`.
  bool complete() const;
  /// Blocks the calling thread until the work before the event is done.
  void wait() const;
  /// Work enqueued on `stream` of `context` from now on waits for the event; the caller does not. The context
  /// may be on another device. If it is on the CPU, the caller waits.
  void waitOn(Context& context, Stream stream = Stream::Compute) const;

 private:
  std::unique_ptr<detail::BackendEvent> backend_;  // none: always complete
};

/// Work that is recorded once and launched as a whole many times. On a GPU it is a CUDA graph, and a launch
/// is one call. On the CPU it keeps the function and calls it. Each launch reads and writes the same memory,
/// which must stay allocated; values that change between launches are read from that memory. Move-only; one
/// thread at a time.
class Graph {
 public:
  /// Calls `work` once; on a GPU its operations are recorded, not run. `work` enqueues on `Stream::Compute`
  /// of `context`, and on streams that wait for it and that it waits for. It must not allocate, wait or read
  /// a result; see core/backend/cuda/README.md.
  /// @throws DeviceFailure if something cannot be recorded, and whatever `work` throws; nothing runs then.
  Graph(Context& context, std::function<void()> work);
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  /// Enqueues the work on `Stream::Compute` of the context. Allocates nothing.
  void launch();

 private:
  std::function<void()> work_;                     // on the CPU
  std::unique_ptr<detail::BackendGraph> backend_;  // on a GPU
};

}  // namespace muster
