#include "muster/core/ops/update.h"

#include <limits>
#include <vector>

#include "muster/core/backend/cuda/kernels/update.h"

#include "muster/core/backend/cuda/state.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/loss.h"

namespace muster::cuda {
namespace {

using Rule = UpdateSettings::Rule;

static_assert(kLossNumbers == kNumbersOfLoss);
static_assert(kMostBlocks * sizeof(double) <= kScratchBytes);

int statesOf(Rule rule) {
  return rule == Rule::Sgd ? 0 : rule == Rule::Adam ? 2 : 1;
}

/// A table that stays on the device for the life of a plan.
template <typename T>
Buffer upload(const std::vector<T>& table, const State& state) {
  Buffer buffer(table.size() * sizeof(T), state.device());
  if (table.empty()) return buffer;
  MUSTER_CUDA_CHECK(
      cudaMemcpyAsync(buffer.data(), table.data(), buffer.bytes(), cudaMemcpyHostToDevice, state.stream()));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(state.stream()));
  return buffer;
}

/// The ranges cut into what one block takes at a time.
class Chunks {
 public:
  /// @param ownDecay  weight decay of the rule itself, for the regularised ranges.
  Chunks(std::span<const UpdateRange> ranges, float ownDecay, State& state) {
    std::vector<DeviceRange> settings;
    std::vector<Chunk> chunks;
    for (const auto& range : ranges) {
      const auto index = static_cast<std::int32_t>(settings.size());
      settings.push_back(
          {range.learningRate, range.l1, range.l2, range.weightDecay + (range.regularised ? ownDecay : 0)});
      for (std::int64_t at = range.begin; at < range.end; at += kChunkElements)
        chunks.push_back({at, static_cast<std::int32_t>(std::min(kChunkElements, range.end - at)), index});
    }
    count_ = static_cast<std::int64_t>(chunks.size());
    ranges_ = upload(settings, state);
    chunks_ = upload(chunks, state);
  }

  /// A call over them, its blocks still to be set.
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

cudaError_t launchRule(const UpdateCall& call, const UpdateSettings& s, cudaStream_t stream) {
  const auto single = [](double value) { return static_cast<float>(value); };
  switch (s.rule) {
    case Rule::Sgd:
      return launchUpdate(call, update::SgdRule{}, stream);
    case Rule::Nesterovs:
      return launchUpdate(call, update::NesterovsRule{single(s.momentum)}, stream);
    case Rule::Adam:
      // The corrections are among the step's numbers.
      return launchUpdate(call,
                          update::AdamRule{single(s.beta1), single(1 - s.beta1), single(s.beta2),
                                           single(1 - s.beta2), 1, 1, single(s.epsilon)},
                          stream);
    case Rule::RmsProp:
      return launchUpdate(call, update::RmsPropRule{single(s.decay), single(1 - s.decay), single(s.epsilon)},
                          stream);
    case Rule::AdaGrad:
      return launchUpdate(call, update::AdaGradRule{single(s.epsilon)}, stream);
  }
  return cudaErrorInvalidValue;
}

class KernelUpdatePlan final : public UpdatePlan {
 public:
  KernelUpdatePlan(const UpdateSettings& settings, std::int64_t elements, std::span<const UpdateRange> ranges,
                   Context& context)
      : settings_(settings),
        elements_(elements),
        context_(context),
        chunks_(ranges, static_cast<float>(settings.weightDecay), stateOf(context)),
        norm_(2 * sizeof(double), context.device()) {}

  void run(const UpdateBlocks& blocks, const Tensor& numbers, Tensor& penalty,
           const Tensor& losses) override {
    expectBlock("parameters", blocks.parameters);
    expectBlock("gradients", blocks.gradients);
    State& state = stateOf(context_);
    UpdateCall call = chunks_.call(state);
    call.parameters = blocks.parameters.data<float>();
    call.gradients = blocks.gradients.data<float>();
    for (int i = 0; i < statesOf(settings_.rule); ++i) {
      expectBlock("state", blocks.state[static_cast<std::size_t>(i)]);
      call.state[i] = blocks.state[static_cast<std::size_t>(i)].data<float>();
    }
    call.numbers = numbersOf(numbers);
    call.penalty = doubles("penalty", penalty, 1);
    if (losses.defined()) {
      call.losses = doubles("losses", losses, losses.elements());
      call.lossCount = losses.elements() / static_cast<std::int64_t>(kLossNumbers);
    }
    if (settings_.clipValue > 0) call.clipValue = static_cast<float>(settings_.clipValue);
    if (settings_.clipNorm > 0) {
      auto* const norm = reinterpret_cast<double*>(norm_.data());
      MUSTER_CUDA_CHECK(launchSquaredNorm(call, settings_.clipNorm, norm, state.stream()));
      call.clipScale = norm + 1;
    }
    MUSTER_CUDA_CHECK(launchRule(call, settings_, state.stream()));
  }

 private:
  void expectBlock(const char* name, const Tensor& block) const {
    muster::detail::expectTensor("update", name, block, {.shape = {elements_}, .device = context_.device()});
  }
  double* doubles(const char* name, const Tensor& tensor, std::int64_t count) const {
    muster::detail::expectTensor("update", name, tensor,
                                 {.shape = {count}, .dtype = DType::Float64, .device = context_.device()});
    return tensor.data<double>();
  }
  /// The order of `writeUpdateNumbers`; t is for the CPU.
  const StepNumbers* numbersOf(const Tensor& numbers) const {
    static_assert(sizeof(StepNumbers) == kUpdateNumbers * sizeof(double));
    return reinterpret_cast<const StepNumbers*>(doubles("numbers", numbers, kUpdateNumbers));
  }

  UpdateSettings settings_;
  std::int64_t elements_;
  Context& context_;
  Chunks chunks_;
  Buffer norm_;  // {squares, scale}
};

double readDouble(State& state) {
  return *reinterpret_cast<const double*>(state.readResult(sizeof(double)));
}

/// One update by hand: a plan made for it, and its penalty waited for.
double runOnce(UpdateSettings settings, const UpdateBlocks& blocks, std::span<const UpdateRange> ranges,
               GradientClip clip, std::int64_t t, Context& context) {
  settings.clipValue = clip.clipValue;
  const Shape flat{blocks.parameters.elements()};
  UpdateBlocks rows{blocks.parameters.reshape(flat), blocks.gradients.reshape(flat), {}};
  for (int i = 0; i < statesOf(settings.rule); ++i)
    rows.state[static_cast<std::size_t>(i)] = blocks.state[static_cast<std::size_t>(i)].reshape(flat);
  KernelUpdatePlan plan(settings, flat.elements(), ranges, context);
  Tensor numbers = Tensor::zeros({kUpdateNumbers}, DType::Float64);
  writeUpdateNumbers(settings, 1, t, clip.scale, numbers);
  const Tensor there = copyTo(numbers, context.device());
  State& state = stateOf(context);
  Tensor penalty = Tensor::view(state.deviceResult(), {1}, DType::Float64, context.device());
  plan.run(rows, there, penalty, {});
  return readDouble(state);
}

}  // namespace

std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::span<const UpdateRange> ranges, Context& context) {
  return std::make_unique<KernelUpdatePlan>(settings, elements, ranges, context);
}

double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context) {
  return runOnce({.rule = Rule::Sgd}, blocks, ranges, clip, 1, context);
}

double updateNesterovs(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                       float momentum, Context& context) {
  return runOnce({.rule = Rule::Nesterovs, .momentum = momentum}, blocks, ranges, clip, 1, context);
}

double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context) {
  return runOnce({.rule = Rule::Adam,
                  .beta1 = scalars.beta1,
                  .beta2 = scalars.beta2,
                  .epsilon = scalars.epsilon,
                  .weightDecay = scalars.weightDecay},
                 blocks, ranges, clip, scalars.t, context);
}

double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context) {
  return runOnce({.rule = Rule::RmsProp, .decay = decay, .epsilon = epsilon}, blocks, ranges, clip, 1,
                 context);
}

double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context) {
  return runOnce({.rule = Rule::AdaGrad, .epsilon = epsilon}, blocks, ranges, clip, 1, context);
}

double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context) {
  State& state = stateOf(context);
  const UpdateRange range{.begin = begin, .end = end};
  const Chunks chunks({&range, 1}, 0, state);
  UpdateCall call = chunks.call(state);
  call.gradients = x.data<float>();
  MUSTER_CUDA_CHECK(launchSquaredNorm(call, std::numeric_limits<double>::infinity(),
                                      reinterpret_cast<double*>(state.deviceResult()), state.stream()));
  return readDouble(state);
}

double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges,
                             Context& context) {
  State& state = stateOf(context);
  const Chunks chunks(ranges, 0, state);
  UpdateCall call = chunks.call(state);
  call.parameters = parameters.data<float>();
  call.penalty = reinterpret_cast<double*>(state.deviceResult());
  MUSTER_CUDA_CHECK(launchPenalty(call, state.stream()));
  return readDouble(state);
}

}  // namespace muster::cuda
