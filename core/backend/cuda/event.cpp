#include "muster/core/backend/cuda/state.h"
#include "muster/core/backend/cuda/switches.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/device/detail/backend.h"
#include "muster/core/device/detail/cuda.h"

namespace muster::cuda {
namespace {

class CudaEvent final : public detail::BackendEvent {
 public:
  explicit CudaEvent(Device device) : device_(device), event_(makeOn(device)) {}
  ~CudaEvent() override {
    try {
      const DeviceGuard guard(device_.index());
      event_.reset();
    } catch (const std::exception& error) {
      logWarning("{}", error.what());
    }
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(Context& context, Stream stream) override {
    require(context.device() == device_, "event: it belongs to {} and cannot be recorded on {}",
            device_.toString(), context.device().toString());
    MUSTER_CUDA_CHECK(cudaEventRecord(event_.get(), stateOf(context).stream(stream)));
  }

  bool complete() const override {
    const DeviceGuard guard(device_.index());
    const cudaError_t state = cudaEventQuery(event_.get());
    if (state == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check(state, "cudaEventQuery(event_.get())");
    return true;
  }

  void wait() const override {
    const DeviceGuard guard(device_.index());
    MUSTER_CUDA_CHECK(cudaEventSynchronize(event_.get()));
  }

  void waitOn(Context& context, Stream stream) const override {
    MUSTER_CUDA_CHECK(cudaStreamWaitEvent(stateOf(context).stream(stream), event_.get(), 0));
  }

 private:
  /// Waiting threads spin, which is fastest, or sleep if there are more contexts with layers than cores.
  static EventOwner makeOn(Device device) {
    const DeviceGuard guard(device.index());
    const unsigned how =
        State::withLayers() > availableParallelism() ? cudaEventBlockingSync : cudaEventDefault;
    return make<EventOwner>([how](auto* event) {
      MUSTER_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming | how));
    });
  }

  Device device_;
  EventOwner event_;
};

class CudaGraph final : public detail::BackendGraph {
 public:
  explicit CudaGraph(Context& context) : context_(context) {}

  void beginCapture() override {
    if (!switches().graphs) throw DeviceFailure("recording is switched off by MUSTER_CUDA_GRAPHS");
    MUSTER_CUDA_CHECK(cudaStreamBeginCapture(stateOf(context_).stream(), cudaStreamCaptureModeThreadLocal));
  }

  void endCapture() override {
    const GraphOwner graph = make<GraphOwner>([&](auto* recorded) {
      MUSTER_CUDA_CHECK(cudaStreamEndCapture(stateOf(context_).stream(), recorded));
    });
    std::size_t nodes = 0;
    MUSTER_CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
    log(LogLevel::Debug, fmt::format("recorded a graph of {} nodes", nodes));
    executable_ = make<GraphExecOwner>(
        [&](auto* ready) { MUSTER_CUDA_CHECK(cudaGraphInstantiate(ready, graph.get(), 0)); });
    MUSTER_CUDA_CHECK(cudaGraphUpload(executable_.get(), stateOf(context_).stream()));
  }

  void abandonCapture() noexcept override {
    // Ignore errors: the exception that ended the capture also explains an invalid or unjoined capture.
    cudaGraph_t recorded = nullptr;  // null if the capture was invalidated
    static_cast<void>(cudaStreamEndCapture(static_cast<State&>(context_.backend()).stream(), &recorded));
    static_cast<void>(cudaGetLastError());
    if (recorded) MUSTER_CUDA_LOG(cudaGraphDestroy(recorded));
  }

  void launch() override {
    MUSTER_CUDA_CHECK(cudaGraphLaunch(executable_.get(), stateOf(context_).stream()));
  }

 private:
  Context& context_;
  GraphExecOwner executable_;
};

}  // namespace

std::unique_ptr<detail::BackendEvent> makeEvent(Device device) {
  return std::make_unique<CudaEvent>(device);
}

std::unique_ptr<detail::BackendGraph> makeGraph(Context& context) {
  return std::make_unique<CudaGraph>(context);
}

}  // namespace muster::cuda
