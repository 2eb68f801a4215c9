#include "muster/core/nn/step/network_batch.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/ops/detail/class_labels.h"

namespace muster::detail {
namespace {

/// The name of a tensor for messages.
std::string_view nameAmong(const std::vector<NamedTensor>& tensors, const Tensor& tensor) {
  for (const auto& other : tensors)
    if (other.value.raw() == tensor.raw()) return other.name;
  return {};
}

/// Advice if only the length of a sequence does not match.
std::string lengthAdvice(const NetworkInput& input, const Shape& value) {
  if (input.shape.rank() != (input.indices ? 1 : 2) || value.rank() != input.shape.rank() + 1) return {};
  const Shape example = value.dropFirst();
  if (example.dropFirst() != input.shape.dropFirst() || example[0] == input.shape[0]) return {};
  return fmt::format(
      "; a network's sequences keep their length: {} {} steps and mask the padding, or state 0 for any "
      "length",
      example[0] < input.shape[0] ? "pad to" : "cut or pad to", input.shape[0]);
}

/// Whether a mask's name looks like a misspelt "features".
bool resemblesFeatures(std::string_view name) {
  constexpr std::string_view kBegin = "feature";
  return name.size() >= kBegin.size() &&
         std::ranges::equal(name.substr(0, kBegin.size()), kBegin, {}, [](char c) {
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

void requireOneLossMask(const NetworkPlan& plan, const std::vector<NamedTensor>& masks) {
  const NamedTensor* found = nullptr;
  for (const auto& mask : masks) {
    if (mask.name == "features") continue;
    if (resemblesFeatures(mask.name) && mask.name != plan.outputs.front().name)
      throw InvalidArgument(fmt::format(
          "network: the batch has a mask called {}; the one of time steps is called features", mask.name));
    if (found != nullptr)
      throw InvalidArgument(
          fmt::format("network: the batch has masks called {} and {}; besides features one is read",
                      found->name, mask.name));
    found = &mask;
  }
}

/// With one output its mask may have nearly any name; a mask that is not read is an error.
void requireKnownMasks(const NetworkPlan& plan, const Batch& batch) {
  batch.requireMaskValues();
  if (plan.outputs.size() == 1) return requireOneLossMask(plan, batch.masks);
  for (const auto& mask : batch.masks) {
    const bool isKnown =
        mask.name == "features" ||
        std::ranges::find(plan.outputs, mask.name, &NetworkOutput::name) != plan.outputs.end();
    if (isKnown) continue;
    std::vector<std::string> names{"features"};
    for (const auto& output : plan.outputs) names.push_back(output.name);
    throw InvalidArgument(
        fmt::format("network: the batch has a mask called {}; the masks that are read are {}", mask.name,
                    fmt::join(names, ", ")));
  }
}

/// The end of the message about labels that do not fit: which loss is for them; "" if it is not the loss.
std::string lossFor(const Tensor& labels, const LossHead& head, const Shape& predictions) {
  if (head.own) return {};
  const bool classes = detail::takesClasses(head.loss, predictions);
  const bool oneEach = labels.shape() == predictions.dropLast();
  if (labels.dtype() == DType::Int64 && !classes && oneEach)
    return fmt::format("; the loss {} is for {}, and that of classes is nll", nameOf(head.loss),
                       head.loss == Loss::BinaryCrossEntropy ? "a label of each output" : "numbers");
  if (labels.dtype() == DType::Float32 && classes && predictions[-1] > 1 &&
      (oneEach || labels.shape()[-1] == 1))
    return fmt::format("; the loss {} is for classes, and those of numbers are mse, mae and huber",
                       nameOf(head.loss));
  if (labels.dtype() == DType::Float32 && predictions[-1] == 1 && oneEach)
    return fmt::format("; a number for each {} is {}", predictions.rank() == 2 ? "example" : "step",
                       predictions.toString());
  return {};
}

}  // namespace

const NamedTensor& namedFor(const std::vector<NamedTensor>& tensors, std::string_view what,
                            std::string_view name, bool only) {
  require(!tensors.empty(), "network: the batch has no {}", what);
  if (only) return tensors.front();
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  if (found != tensors.end()) return *found;
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  throw InvalidArgument(
      fmt::format("network: the batch has no {} called {}; it has {}", what, name, fmt::join(names, ", ")));
}

const Tensor& tensorFor(const std::vector<NamedTensor>& tensors, std::string_view what, std::string_view name,
                        bool only) {
  return namedFor(tensors, what, name, only).value;
}

std::vector<Shape> shapesFrom(std::span<const NetworkInput> inputs, const Batch& batch) {
  if (batch.namesRows()) {
    Batch gathered;
    batch.gatherInto(gathered);
    return shapesFrom(inputs, gathered);
  }
  std::vector<Shape> shapes;
  for (const auto& input : inputs) {
    shapes.push_back(input.shape);
    if (!input.shape.empty()) continue;
    const Tensor& value = tensorFor(batch.features, "features", input.name, inputs.size() == 1);
    require(value.shape().rank() > 1,
            "network: the first batch gives the shape of {}, and has to be [N, ...], got {}", input.name,
            value.toString());
    require(value.shape()[0] > 0,
            "network: the first batch has no examples to take the shape of {} from, it is {}", input.name,
            value.toString());
    shapes.back() = value.shape().dropFirst();
    require(shapes.back().elements() > 0,
            "network: the first batch gives the shape of {}, but its examples are empty: {}", input.name,
            value.toString());
  }
  return shapes;
}

Batch exampleFor(const NetworkPlan& plan) {
  Batch batch;
  for (const auto& input : plan.inputs) {
    const DType type = input.indices ? DType::Int64 : DType::Float32;
    requireMemoryRoom(static_cast<double>(input.shape.elements()) * static_cast<double>(muster::sizeOf(type)),
                      "network: an example takes",
                      fmt::format("the shape of its {} is {}", input.name, input.shape.toString()));
    batch.features.push_back({input.name, Tensor::zeros(input.shape.prepend(1), type)});
  }
  return batch;
}

void requireInitialized(const NetworkPlan& plan) {
  require(!plan.empty(), "network: call init() first, or give an input shape");
}

void requireInput(const NetworkPlan& plan, std::size_t input, const Tensor& value) {
  const auto& wanted = plan.inputs[input];
  const Shape& shape = value.shape();
  if (!wanted.indices && value.dtype() == DType::Int64)
    throw InvalidArgument(fmt::format(
        "network: the first layer takes numbers, and {} {} are indices: an embedding as the first layer "
        "takes these, and numbers have to be float32 or uint8",
        wanted.name, value.toString()));
  const bool examples = shape.rank() >= 1 && shape[0] > 0;
  if (examples && shape.dropFirst() == wanted.shape) return;
  if (!wanted.open())
    throw InvalidArgument(fmt::format("network: expected {} {} with at least one example before it, got {}{}",
                                      wanted.name, wanted.shape.toString(), value.toString(),
                                      lengthAdvice(wanted, shape)));
  const auto fits = [](std::int64_t size, std::int64_t stated) {
    return stated == 0 ? size > 0 : size == stated;
  };
  if (examples &&
      std::equal(shape.begin() + 1, shape.end(), wanted.stated.begin(), wanted.stated.end(), fits))
    return;
  throw InvalidArgument(
      fmt::format("network: expected {} {}, where 0 is any size, with at least one example before it, got {}",
                  wanted.name, wanted.stated.toString(), value.toString()));
}

void addOpenSizes(const NetworkInput& input, const Shape& features, BatchSize& size) {
  if (!input.open()) return;
  require(features.rank() == input.stated.rank() + 1, "network: {} has the shape {}, got {}", input.name,
          input.stated.toString(), features.toString());
  const OpenSizes open = openSizesOf(input, features.dropFirst());
  if (size.open != OpenSizes{} && open != size.open)
    throw InvalidArgument(fmt::format(
        "network: {} is {}, but another input has other sizes where both leave them open; state one",
        input.name, features.toString()));
  size.open = open;
}

BatchSize sizeOf(const NetworkPlan& plan, std::span<const Tensor* const> features) {
  BatchSize size{.examples = features.front()->shape()[0]};
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    addOpenSizes(plan.inputs[i], features[i]->shape(), size);
  return size;
}

StepInfo infoOf(const Batch& batch, std::uint64_t seed, bool training) {
  return {.stamp = batch.stamp, .seed = seed, .training = training, .sequenceMask = batch.sequenceMask()};
}

void findFeatures(const NetworkPlan& plan, const Batch& batch, std::vector<const Tensor*>& features) {
  requireInitialized(plan);
  features.resize(plan.inputs.size());
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    features[i] = &tensorFor(batch.features, "features", plan.inputs[i].name, plan.inputs.size() == 1);
    requireInput(plan, i, *features[i]);
    if (features[i]->shape()[0] != features[0]->shape()[0])
      throw InvalidArgument(fmt::format("network: the batch has {} of {}, but {} of {}",
                                        plural(features[i]->shape()[0], "example"), plan.inputs[i].name,
                                        features[0]->shape()[0], plan.inputs[0].name));
  }
  requireKnownMasks(plan, batch);
}

const Tensor& labelsOf(const NetworkPlan& plan, const Batch& batch, const NetworkOutput& output,
                       const Shape& predictions) {
  const Tensor& labels = tensorFor(batch.labels, "labels", output.name, plan.outputs.size() == 1);
  const bool takesClasses = !output.head->own && detail::takesClasses(output.head->loss, predictions);
  if (labels.dtype() == DType::Float32 && labels.shape() == predictions) return labels;
  if (takesClasses && labels.dtype() == DType::Int64 && labels.shape() == predictions.dropLast())
    return labels;
  throw InvalidArgument(fmt::format(
      "network: output {} takes {}float32 {}, but its labels, called {}, are {}{}", output.name,
      takesClasses ? fmt::format("classes int64 {} or ", predictions.dropLast().toString()) : std::string(),
      predictions.toString(), nameAmong(batch.labels, labels), labels.toString(),
      lossFor(labels, *output.head, predictions)));
}

Tensor lossMaskOf(const NetworkPlan& plan, const Batch& batch, const NetworkOutput& output,
                  const Shape& predictions) {
  Tensor mask = batch.lossMask(predictions, plan.outputs.size() == 1 ? std::string_view() : output.name);
  const Shape rows = predictions.dropLast();
  if (!mask.defined() || (mask.dtype() == DType::Float32 && mask.shape() == rows)) return mask;
  throw InvalidArgument(fmt::format(
      "network: output {} takes a mask float32 {}, a weight for each {}, but its mask, called {}, is {}{}",
      output.name, rows.toString(), rows.rank() == 1 ? "example" : "step", nameAmong(batch.masks, mask),
      mask.toString(),
      rows.rank() == 1 && mask.shape().rank() == 2 ? "; the one of time steps is called features" : ""));
}

}  // namespace muster::detail
