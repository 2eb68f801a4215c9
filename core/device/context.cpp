#include "muster/core/device/context.h"

#include <omp.h>

#include <atomic>
#include <exception>
#include <utility>
#include <vector>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/signal_stack.h"
#include "muster/core/base/start_thread.h"
#include "muster/core/base/unwinder.h"
#include "muster/core/device/arithmetic_scope.h"
#include "muster/core/device/detail/backend.h"
#include "muster/core/device/detail/cpu.h"
#include "muster/core/device/detail/cuda.h"
#include "muster/core/device/detail/loop_threads.h"
#include "muster/core/device/detail/side_stream.h"
#include "muster/core/device/math_mode.h"

namespace muster {
namespace {

thread_local int openScopes = 0;

/// The OpenMP library ends the process if the system refuses it a thread. So start the same number of trial
/// threads first, which throws if one is refused, then let the library start its own.
void requireThreads(int threads) {
  struct Release {
    std::atomic<bool>& released;
    ~Release() {
      released = true;
      released.notify_all();
    }
  };
  {
    std::atomic<bool> released{false};
    std::vector<std::jthread> trial;  // joined after the release
    const Release release{released};
    for (int i = 2; i <= threads; ++i)
      trial.push_back(
          startThread(fmt::format("an operation, {} of {},", i, threads), [&] { released.wait(false); }));
  }
  const ArithmeticScope arithmetic;
  std::atomic<int> started{0};
#pragma omp parallel num_threads(threads)
  {
    useSignalStack();
    ++started;
  }
  // A smaller team would add up in another order, and give other bits.
  require(started == threads,
          "context: {} threads were asked for, but OpenMP starts {}: see OMP_THREAD_LIMIT; fewer threads and "
          "more workers use as many cores",
          threads, started.load());
}

ContextOptions checked(Device device, ContextOptions options) {
  useSignalStack();
  require(options.threads >= 1, "context: expected at least 1 thread, got {}", options.threads);
  if (device.isCpu() || !options.cores.empty()) requireOwnLoopThreads(options.threads);
  loadUnwinder();
  startOpenMp();  // now, because in the middle of a training more files are open
  if (device.isCpu() && options.threads > 1) requireThreads(options.threads);
  return options;
}

std::unique_ptr<detail::BackendState> makeState(Device device, const ContextOptions& options) {
  if (device.isCpu()) {
    const MathMode mode = options.mathMode.value_or(MathMode::Float32);
    const auto why = whyNoMathMode(device, mode);
    require(why.empty(), "context: {} has no {}: {}", device.toString(), nameOf(mode), why);
    auto state = cpu::makeState();
    cpu::multiplyIn(mode, *state);
    return state;
  }
  if constexpr (kCudaBuilt) return cuda::makeState(device, options);
  throw DeviceUnavailable(
      fmt::format("context: {} is not available, this build has no CUDA", device.toString()));
}

}  // namespace

std::string whyNoMathMode(Device device, MathMode mode) {
  if (mode == MathMode::Float32) return {};
  if (device.isCpu())
    return mode == MathMode::BFloat16 ? cpu::whyNoBFloat16() : std::string("only GPUs have it");
  return propertiesOf(device).tensorFloat32 ? "" : "it needs compute capability 8.0";
}

Context::Context(Device device, ContextOptions options)
    : device_(device),
      options_(checked(device, std::move(options))),
      pin_(options_.cores, options_.threads),
      claim_(CoreClaim::ofFree(options_.cores)),
      backend_(makeState(device, options_)) {}

Context::~Context() = default;

void Context::synchronize() {
  backend_->synchronize();
}

ContextScope::ContextScope(Context& context) : threadsBefore_(omp_get_max_threads()) {
  useSignalStack();
  if (context.device().isCpu()) requireOwnLoopThreads(context.threads());
  omp_set_num_threads(context.threads());
}

ContextScope::~ContextScope() {
  omp_set_num_threads(threadsBefore_);
}

SideStreamScope::SideStreamScope(Context& context)
    : context_(&context),
      outer_(context.sideStreamScopes_++ == 0),
      before_(std::exchange(context.sideStreamAllowed_, false)) {
  ++openScopes;
}

SideStreamScope::~SideStreamScope() {
  try {
    join();
  } catch (const std::exception& error) {
    // If an exception is leaving the scope, that exception caused the failed join: no second message.
    if (std::uncaught_exceptions() == 0) logWarning("{}", error.what());
  }
}

bool detail::insideSideStreamScope() {
  return openScopes > 0;
}

void SideStreamScope::join() {
  if (!context_) return;
  Context& context = *std::exchange(context_, nullptr);
  --context.sideStreamScopes_;
  --openScopes;
  context.sideStreamAllowed_ = before_;
  if (outer_) context.backend_->joinSideStream();
}

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

Event::Event(Context& context) {
  if constexpr (kCudaBuilt)
    if (!context.device().isCpu()) backend_ = cuda::makeEvent(context.device());
}

void Event::record(Context& context, Stream stream) {
  if (backend_) backend_->record(context, stream);
}

bool Event::complete() const {
  return !backend_ || backend_->complete();
}

void Event::wait() const {
  if (backend_) backend_->wait();
}

void Event::waitOn(Context& context, Stream stream) const {
  if (!backend_) return;
  if (context.device().isCpu()) return backend_->wait();
  backend_->waitOn(context, stream);
}

Graph::Graph(Context& context, std::function<void()> work) {
  if constexpr (kCudaBuilt) {
    if (!context.device().isCpu()) {
      backend_ = cuda::makeGraph(context);
      backend_->beginCapture();
      try {
        work();
      } catch (...) {
        backend_->abandonCapture();
        throw;
      }
      backend_->endCapture();
      return;
    }
  }
  work_ = std::move(work);
}

Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

void Graph::launch() {
  if (backend_) return backend_->launch();
  work_();
}

}  // namespace muster
