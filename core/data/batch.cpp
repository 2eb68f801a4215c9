#include "muster/core/data/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/data/in_memory.h"

namespace muster {

std::string BatchStamp::toString() const {
  return fmt::format("batch {} of epoch {}", sequence + 1, epoch + 1);
}

std::int64_t Batch::examples() const {
  if (features.empty() || features.front().value.shape().rank() == 0) return 0;
  return features.front().value.shape()[0];
}

Tensor NamedTensor::gathered() const {
  if (!source) return value;
  const Tensor& all = source->onCpu();
  Tensor numbers = Tensor::empty(all.shape().dropFirst().prepend(value.elements()), all.dtype());
  gatherRows(all, value.span<std::int64_t>(), numbers);
  return numbers;
}

bool Batch::namesRows() const {
  const auto doesSo = [](const NamedTensor& tensor) { return tensor.source != nullptr; };
  return std::ranges::any_of(features, doesSo) || std::ranges::any_of(labels, doesSo);
}

void Batch::release() {
  for (auto* const tensors : {&features, &labels, &masks})
    for (auto& tensor : *tensors) {
      tensor.value = {};
      tensor.source = nullptr;
    }
}

void Batch::gatherInto(Batch& into) const {
  const auto gather = [](const std::vector<NamedTensor>& from, std::vector<NamedTensor>& to) {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto& [name, value, source] = from[i];
      to[i].name = name;
      const Tensor& numbers = source ? source->onCpu() : value;
      to[i].value.resize(source ? numbers.shape().dropFirst().prepend(value.elements()) : numbers.shape(),
                         numbers.dtype());
      if (source)
        gatherRows(numbers, value.span<std::int64_t>(), to[i].value);
      else
        copy(numbers, to[i].value);
    }
  };
  gather(features, into.features);
  gather(labels, into.labels);
  gather(masks, into.masks);
  into.stamp = stamp;
  into.parts = parts;
}

const Tensor* Batch::sequenceMask() const {
  const auto found = std::ranges::find(masks, "features", &NamedTensor::name);
  return found == masks.end() ? nullptr : &found->value;
}

const NamedTensor* Batch::labelsOf(std::string_view output) const {
  const auto isWanted = [&](const NamedTensor& tensor) { return output.empty() || tensor.name == output; };
  const auto found = std::ranges::find_if(labels, isWanted);
  return found == labels.end() ? nullptr : &*found;
}

Tensor Batch::lossMask(const Shape& predictions, std::string_view output) const {
  const auto isWanted = [&](const NamedTensor& mask) {
    return mask.name != "features" && (output.empty() || mask.name == output);
  };
  if (const auto found = std::ranges::find_if(masks, isWanted); found != masks.end()) return found->value;
  const Tensor* steps = sequenceMask();
  return predictions.rank() == 3 && steps ? *steps : Tensor();
}

namespace {

/// "example 3" for a mask [N], "example 3, step 5" for [N, T].
std::string placeIn(const Shape& mask, std::size_t index) {
  const auto at = static_cast<std::int64_t>(index);
  if (mask.rank() < 2) return fmt::format("example {}", at);
  const std::int64_t steps = mask.elements() / mask[0];
  return fmt::format("example {}, step {}", at / steps, at % steps);
}

}  // namespace

void Batch::requireMaskValues() const {
  for (const auto& [name, mask, source] : masks) {
    if (!mask.defined() || mask.dtype() != DType::Float32 || !mask.device().isCpu()) continue;
    const bool ofSteps = name == "features";
    const auto values = mask.span<float>();
    const auto isUsable = [ofSteps](float value) {
      return ofSteps ? value == 0 || value == 1 : value >= 0 && value < INFINITY;
    };
    const auto bad = std::ranges::find_if_not(values, isUsable);
    if (bad == values.end()) continue;
    throw InvalidArgument(
        fmt::format("batch: the mask {} of {} is {}; it must be {}", name,
                    placeIn(mask.shape(), static_cast<std::size_t>(bad - values.begin())),
                    std::isnan(*bad) ? std::abs(*bad) : *bad,  // NaN is printed without a sign
                    ofSteps ? "1 for a real step or 0 for padding" : "finite and at least 0"));
  }
}

Tensor& Batch::ensure(std::vector<NamedTensor>& tensors, std::string_view name, const Shape& shape,
                      DType dtype) {
  auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  if (found == tensors.end()) found = tensors.insert(tensors.end(), NamedTensor{std::string(name), {}});
  found->source = nullptr;
  Tensor& tensor = found->value;
  const bool fits = tensor.defined() && tensor.dtype() == dtype && tensor.shape() == shape &&
                    tensor.layout() == Layout::RowMajor && tensor.device().isCpu();
  if (!fits) tensor.resize(shape, dtype);
  return tensor;
}

Tensor& Batch::ensureOnly(std::vector<NamedTensor>& tensors, std::string_view name, const Shape& shape,
                          DType dtype) {
  std::erase_if(tensors, [&](const NamedTensor& tensor) { return tensor.name != name; });
  return ensure(tensors, name, shape, dtype);
}

}  // namespace muster
