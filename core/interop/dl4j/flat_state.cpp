#include "muster/core/interop/dl4j/detail/flat_state.h"

#include <algorithm>
#include <map>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"

namespace muster::dl4j::detail {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr std::size_t kMostTensors = 100000;

/// Deeplearning4j's velocity has the opposite sign, and the learning rate in it.
double velocityFactor(const Network& network) {
  const Updater& updater = network.trainingOptions().updater;
  if (updater.type() != Nesterovs::kType) return 1;
  const auto* const rule = std::get_if<update::NesterovsOfStepsRule>(&updater.settings()->rule);
  return rule != nullptr ? -1 : -updater.learningRate().at(network.iteration(), network.epoch());
}

Tensor tensorOf(Network& network, const std::string& name) {
  for (const auto& block : network.blocks())
    if (block.kind != BlockKind::Gradients && block.segments->find(name) != nullptr)
      return block.segment(name);
  throw InvalidArgument(fmt::format("the network has no tensor {}", name));
}

constexpr std::string_view kLogarithms = "dl4j.";  // and the tensor's name

}  // namespace

const Tensor* keptLogarithms(Network& network, const std::string& tensor) {
  const Tensor* kept = findValues(network.listenerState(), std::string(kLogarithms) + tensor);
  if (kept == nullptr) return nullptr;
  const Tensor values = copyTo(tensorOf(network, tensor), Device::cpu());
  const auto same = [](float logarithm, float variance) {
    return decoded(Coding::LogDeviation, logarithm) == variance;
  };
  return kept->shape() == values.shape() && kept->dtype() == DType::Float32 &&
                 std::ranges::equal(kept->span<float>(), values.span<float>(), same)
             ? kept
             : nullptr;
}

FlatState::FlatState(const Conversion& conversion)
    : states_(static_cast<std::int64_t>(conversion.network->trainingOptions().updater.stateNames().size())) {
  std::map<std::string, std::int64_t, std::less<>> counts;
  const auto plan = muster::detail::NetworkProbe::layOut(*conversion.network);
  for (const auto& node : plan.nodes)
    for (const auto& specs :
         {node.module->parameters(node.inputShapes), node.module->statistics(node.inputShapes)})
      for (const auto& spec : specs) counts[node.name + "." + spec.name] = spec.shape.elements();
  for (const auto& placed : conversion.parameters) {
    const auto found = counts.find(placed.parameter.tensor);
    require(found != counts.end(), "the network has no tensor {}", placed.parameter.tensor);
    targets_.push_back({&placed, found->second});
    // So that no sum of them overflows.
    require(found->second <= kMostElements && targets_.size() <= kMostTensors,
            "its tensor {} has {} elements, or there are too many tensors", found->first, found->second);
  }
}

template <typename Visit>
void FlatState::eachParameter(Network& network, const Visit& visit) const {
  for (const auto& target : targets_) visit(target, tensorOf(network, target.placed->parameter.tensor));
}

template <typename Visit>
void FlatState::eachState(Network& network, const Visit& visit) const {
  for (auto begin = targets_.begin(); begin != targets_.end();) {
    const std::string& key = begin->placed->updaterKey;
    const auto end =
        std::find_if(begin, targets_.end(), [&](const Target& t) { return t.placed->updaterKey != key; });
    if (!key.empty())
      for (auto& state : network.optimizer().state())
        for (auto target = begin; target != end; ++target)
          visit(*target, state.segment(target->placed->parameter.tensor));
    begin = end;
  }
}

std::int64_t FlatState::parameterCount() const {
  std::int64_t count = 0;
  for (const auto& target : targets_) count += target.count;
  return count;
}

std::int64_t FlatState::stateCount() const {
  std::int64_t count = 0;
  for (const auto& target : targets_)
    if (!target.placed->updaterKey.empty()) count += target.count;
  return count * states_;
}

void FlatState::putParameters(Network& network, std::span<const float> values) const {
  eachParameter(network, [&](const Target& target, Tensor tensor) {
    const auto& [name, order, coding, trained] = target.placed->parameter;
    const auto to = tensor.span<float>();
    for (std::int64_t i = 0; i < target.count; ++i)
      to[static_cast<std::size_t>(order.here(i, target.count))] =
          decoded(coding, values[static_cast<std::size_t>(i)]);
    if (coding == Coding::LogDeviation) {
      Tensor kept = Tensor::empty(tensor.shape());
      std::copy_n(values.begin(), target.count, kept.data<float>());
      network.listenerState().push_back({std::string(kLogarithms) + name, kept});
    }
    values = values.subspan(static_cast<std::size_t>(target.count));
  });
}

void FlatState::putState(Network& network, std::span<const float> values) const {
  const double factor = velocityFactor(network);
  eachState(network, [&](const Target& target, Tensor tensor) {
    const auto to = tensor.span<float>();
    for (std::int64_t i = 0; i < target.count; ++i)
      to[static_cast<std::size_t>(target.placed->parameter.order.here(i, target.count))] =
          static_cast<float>(values[static_cast<std::size_t>(i)] / factor);
    values = values.subspan(static_cast<std::size_t>(target.count));
  });
}

std::vector<float> FlatState::takeParameters(Network& network) const {
  std::vector<float> values;
  eachParameter(network, [&](const Target& target, const Tensor& tensor) {
    require(tensor.elements() == target.count, "its tensor {} has another size",
            target.placed->parameter.tensor);
    const auto& parameter = target.placed->parameter;
    if (parameter.coding == Coding::LogDeviation) {
      const Tensor* const kept = keptLogarithms(network, parameter.tensor);
      require(kept != nullptr, "the logarithms of {} are not known", parameter.tensor);
      values.insert(values.end(), kept->span<float>().begin(), kept->span<float>().end());
      return;
    }
    const Tensor here = copyTo(tensor, Device::cpu());
    for (std::int64_t i = 0; i < target.count; ++i)
      values.push_back(here.data<float>()[parameter.order.here(i, target.count)]);
  });
  return values;
}

std::vector<float> FlatState::takeState(Network& network) const {
  std::vector<float> values;
  const double factor = velocityFactor(network);
  eachState(network, [&](const Target& target, const Tensor& tensor) {
    const Tensor here = copyTo(tensor, Device::cpu());
    for (std::int64_t i = 0; i < target.count; ++i)
      values.push_back(static_cast<float>(
          factor * here.data<float>()[target.placed->parameter.order.here(i, target.count)]));
  });
  return values;
}

}  // namespace muster::dl4j::detail
