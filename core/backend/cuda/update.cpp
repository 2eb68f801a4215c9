#include "muster/core/ops/update.h"

#include <limits>
#include <vector>

#include "muster/core/backend/cuda/kernels/update.h"
#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/loss.h"

namespace muster::cuda {
namespace {

static_assert(kLossNumbers == kNumbersOfLoss);
static_assert(2 * kMostBlocks * sizeof(double) <= kScratchBytes);

/// Copies a plan's table to the device.
template <typename T>
Buffer upload(const std::vector<T>& table, const State& state) {
  Buffer buffer(table.size() * sizeof(T), state.device());
  if (table.empty()) return buffer;
  MUSTER_CUDA_CHECK(
      cudaMemcpyAsync(buffer.data(), table.data(), buffer.bytes(), cudaMemcpyHostToDevice, state.stream()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(state.stream()));
  return buffer;
}

/// The ranges divided into chunks; a block updates one chunk at a time.
class Chunks {
 public:
  Chunks(std::span<const UpdateRange> ranges, State& state) {
    std::vector<DeviceRange> settings;
    std::vector<Chunk> chunks;
    for (const auto& range : ranges) {
      const auto index = static_cast<std::int32_t>(settings.size());
      settings.push_back({range.learningRate, range.l1, range.l2, range.weightDecay});
      for (std::int64_t at = range.begin; at < range.end; at += kChunkElements)
        chunks.push_back({at, static_cast<std::int32_t>(std::min(kChunkElements, range.end - at)), index});
    }
    count_ = static_cast<std::int64_t>(chunks.size());
    ranges_ = upload(settings, state);
    chunks_ = upload(chunks, state);
  }

  /// A call for these chunks; the caller sets its blocks.
  UpdateCall call(const State& state) const {
    UpdateCall call{};
    call.ranges = reinterpret_cast<const DeviceRange*>(ranges_.data());
    call.chunks = reinterpret_cast<const Chunk*>(chunks_.data());
    call.chunkCount = count_;
    call.clipValue = std::numeric_limits<float>::infinity();
    call.scratch = state.scratch();
    call.counter = state.counters();
    return call;
  }

 private:
  std::int64_t count_ = 0;
  Buffer ranges_, chunks_;
};

class KernelUpdatePlan final : public UpdatePlan {
 public:
  KernelUpdatePlan(const UpdateSettings& settings, std::int64_t elements, std::span<const UpdateRange> ranges,
                   Context& context)
      : UpdatePlan(settings.rule, elements, context.device()),
        settings_(settings),
        context_(context),
        chunks_(ranges, stateOf(context)),
        norm_(2 * sizeof(double), context.device()),
        firstBad_(sizeof(unsigned long long), context.device()) {
    const cudaStream_t stream = stateOf(context).stream();
    MUSTER_CUDA_CHECK(cudaMemsetAsync(firstBad_.data(), 0xff, firstBad_.bytes(), stream));
    MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

 private:
  void compute(const UpdateBlocks& blocks, const update::StepNumbers* numbers, double* penalty,
               std::span<const double> losses, const Guard& guard) override {
    State& state = stateOf(context_);
    UpdateCall call = chunks_.call(state);
    call.parameters = blocks.parameters.data<float>();
    call.gradients = blocks.gradients.data<float>();
    for (std::size_t i = 0; i < blocks.state.size(); ++i)
      if (blocks.state[i].defined()) call.state[i] = blocks.state[i].data<float>();
    call.numbers = numbers;
    call.penalty = penalty;
    call.losses = losses.data();
    call.lossCount = static_cast<std::int64_t>(losses.size() / kLossNumbers);
    if (settings_.clipValue > 0) call.clipValue = static_cast<float>(settings_.clipValue);
    call.badGradient = guard.badGradient;
    call.firstBad = reinterpret_cast<unsigned long long*>(firstBad_.data());
    call.refused = guard.refused;
    if (settings_.clipNorm > 0 || guard.badGradient) {  // one pass computes both
      auto* const norm = reinterpret_cast<double*>(norm_.data());
      const double most =
          settings_.clipNorm > 0 ? settings_.clipNorm : std::numeric_limits<double>::infinity();
      MUSTER_CUDA_CHECK(launchSquaredNorm(call, most, norm, state.stream()));
      if (settings_.clipNorm > 0) call.clipScale = norm + 1;
    }
    MUSTER_CUDA_CHECK(launchUpdate(call, settings_.rule, state.stream()));
  }

  UpdateSettings settings_;
  Context& context_;
  Chunks chunks_;
  Buffer norm_;      // {squares, scale}
  Buffer firstBad_;  // all bits set between two updates
};

double readDouble(State& state) {
  return *reinterpret_cast<const double*>(state.readResult(sizeof(double)));
}

}  // namespace

std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::vector<UpdateRange> ranges, Context& context) {
  return std::make_unique<KernelUpdatePlan>(settings, elements, ranges, context);
}

double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context) {
  State& state = stateOf(context);
  const UpdateRange range{.begin = begin, .end = end};
  const Chunks chunks({&range, 1}, state);
  UpdateCall call = chunks.call(state);
  call.gradients = x.data<float>();
  MUSTER_CUDA_CHECK(launchSquaredNorm(call, std::numeric_limits<double>::infinity(),
                                      reinterpret_cast<double*>(state.deviceResult()), state.stream()));
  return readDouble(state);
}

double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges,
                             Context& context) {
  State& state = stateOf(context);
  const Chunks chunks(ranges, state);
  UpdateCall call = chunks.call(state);
  call.parameters = parameters.data<float>();
  call.penalty = reinterpret_cast<double*>(state.deviceResult());
  MUSTER_CUDA_CHECK(launchPenalty(call, state.stream()));
  return readDouble(state);
}

}  // namespace muster::cuda
