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
#include "muster/core/device/device.h"
#include "muster/core/device/peers.h"

namespace muster {

/// What a context's work is ordered by: work of one stream is done in the order it was enqueued, work of two
/// only as events say. On the CPU all work is done when a call returns.
enum class Stream {
  Compute,  ///< where operations run
  Copy,     ///< for copies that overlap them
};

/// How matrix products and convolutions multiply float32 numbers; they are always added in float32.
enum class MathMode {
  Float32,        ///< as they are
  TensorFloat32,  ///< rounded to 10 bits of mantissa (GPUs from compute capability 8.0 on)
  BFloat16,       ///< rounded to 7 bits (likewise); parameters, activations and losses stay float32
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
  virtual void prepareAside() {}
  /// Between both, what is enqueued may run beside what is enqueued behind them.
  virtual void beginAside() {}
  virtual void endAside() {}
  /// What is enqueued from now on waits for all of that.
  virtual void joinAside() {}
};
class BackendEvent;
class BackendGraph;
}  // namespace detail

namespace cpu {
std::unique_ptr<detail::BackendState> makeState();
}

struct ContextOptions {
  /// Threads that one operation uses on the CPU; at least 1.
  int threads = 1;
  /// Cores to which the constructing thread (and the threads its operations start) is pinned while the
  /// context lives; empty: not pinned.
  std::vector<int> cores = {};
  /// Nothing: TensorFloat32 on a GPU that has it, else Float32.
  std::optional<MathMode> mathMode = {};
  /// Whether products and convolutions run here. Without them a GPU's context, which then is for copies,
  /// merges and the like, has no handles of vendors' libraries and no workspace.
  bool layers = true;
};

/// Where a thread computes: a device, its library handles and its thread budget. A worker makes its own on
/// its own thread and destroys it there; one thread at a time uses it.
///
/// Work on the CPU is done when a call returns. Work on a GPU is enqueued on the context's streams, which
/// wait for no other's; it is found to have failed (DeviceFailure) by a later call, at the latest by the one
/// that waits for it. After a fault in a kernel every later call on that GPU says DeviceFailure, in every
/// context of the process.
class Context {
 public:
  /// @throws InvalidArgument for threads < 1, for cores that the calling thread may not use, or a math mode
  ///         that `device` does not have; DeviceUnavailable where `device` is not to be had in this build or
  ///         on this machine.
  explicit Context(Device device = Device::cpu(), ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device device() const { return device_; }
  int threads() const { return options_.threads; }
  const std::vector<int>& cores() const { return options_.cores; }

  MathMode mathMode() const { return backend_->mathMode(); }

  /// Waits until everything enqueued here is done, on both streams. On the CPU it always is.
  /// @throws DeviceFailure where some of it failed.
  void synchronize();

  /// The workers that train beside this context's, or nullptr where it trains alone.
  Peers* peers() const { return peers_; }
  /// @param peers  must outlive their use here; nullptr: none.
  void setPeers(Peers* peers) { peers_ = peers; }

  /// Makes what work aside takes, a workspace among it: where that was not done all work is done in its
  /// order. Allocates: at planning.
  void prepareAside() { backend_->prepareAside(); }
  /// Enqueues what `work` enqueues, aside where an `AsideScope` permits that.
  template <typename Work>
  void aside(Work&& work) {
    if (!mayGoAside_) return work();
    backend_->beginAside();
    try {
      work();
    } catch (...) {
      backend_->endAside();
      throw;
    }
    backend_->endAside();
  }

  /// For backends alone.
  detail::BackendState& backend() { return *backend_; }

 private:
  friend class AsideScope;

  Device device_;
  ContextOptions options_;
  ThreadPin pin_;
  std::unique_ptr<detail::BackendState> backend_;
  Peers* peers_ = nullptr;
  int asideScopes_ = 0;
  bool mayGoAside_ = false;
};

/// While it lives, the calling thread's operations use `context`'s number of threads, which is a setting of
/// the thread. Models open one around each step; whoever calls ops directly opens one too.
class ContextScope {
 public:
  explicit ContextScope(Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  int threadsBefore_;
};

/// While it lives, a context's work may be enqueued aside: it waits for what was enqueued before it, and what
/// is enqueued behind it does not wait for it until the scope ends. So neither may touch what the other
/// writes. On a GPU that fills multiprocessors that one operation leaves idle; on the CPU, and where no scope
/// permits it, all work is done in its order. May be recorded. Inside another scope of the context nothing
/// goes aside.
class AsideScope {
 public:
  explicit AsideScope(Context& context);
  /// Ends the scope where `join` did not; what fails then is logged.
  ~AsideScope();
  AsideScope(const AsideScope&) = delete;
  AsideScope& operator=(const AsideScope&) = delete;
  /// Whether `Context::aside` does so from now on; at the beginning it does not. Before `join`.
  void permit(bool aside) { context_->mayGoAside_ = aside && outer_; }
  void join();

 private:
  Context* context_;
  bool outer_, before_;
};

/// A point in a context's work that others can wait for. Complete until it is recorded, and on the CPU
/// always. Move-only. Belongs to the device of the context that it was made for; may be destroyed while it is
/// waited for on a stream.
class Event {
 public:
  Event();
  /// For work of `context`. Allocates: made at planning, recorded in steps.
  explicit Event(Context& context);
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// Moves the event to the end of what is enqueued on `stream` now. Of a context on the event's device.
  void record(Context& context, Stream stream = Stream::Compute);
  /// @throws DeviceFailure, as `wait`, where the device has failed.
  bool complete() const;
  /// Blocks the calling thread until the work before the event is done.
  void wait() const;
  /// What is enqueued on `stream` of `context` from now on waits for the event; the caller does not. The
  /// context may be another device's. On the CPU the caller waits.
  void waitOn(Context& context, Stream stream = Stream::Compute) const;

 private:
  std::unique_ptr<detail::BackendEvent> backend_;  // none: always complete
};

/// Work recorded once and started again and again as a whole. On a GPU it is a CUDA graph: no call but
/// `launch` is made for it. On the CPU the function that enqueues the work is kept and called. Move-only;
/// belongs to its context and one thread at a time. The work reads and writes the same memory each time, and
/// what changes between launches it reads from there; all of that must stay where it is.
class Graph {
 public:
  /// Calls `work` once, which enqueues on `Stream::Compute` of `context` (and on others that it makes wait
  /// for it and waits for again); on a GPU that is recorded and not run. What of the library may be called in
  /// there is said in core/backend/cuda/README.md: no allocation, no waiting, no result read.
  /// @throws DeviceFailure where something cannot be recorded, or what `work` throws; nothing runs then.
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
