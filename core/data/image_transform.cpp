#include "muster/core/data/image_transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// Uniform in -most .. most.
std::int64_t shift(const RandomStream& random, std::uint64_t index, std::int64_t most) {
  return static_cast<std::int64_t>(random.below(index, static_cast<std::uint64_t>(2 * most + 1))) - most;
}

/// Copies `count` elements of a row in reverse order.
template <typename Element>
void mirror(const std::byte* from, std::byte* to, std::int64_t count) {
  const auto* const begin = reinterpret_cast<const Element*>(from);
  std::reverse_copy(begin, begin + count, reinterpret_cast<Element*>(to));
}

ImageView viewOf(const Tensor& features) {
  const Shape& shape = features.shape();
  const bool fits = shape.rank() == 4 && features.device().isCpu() && features.layout() == Layout::RowMajor &&
                    (features.dtype() == DType::UInt8 || features.dtype() == DType::Float32);
  if (!fits)  // `require` would format its text for every batch
    throw InvalidArgument(
        fmt::format("image transform: expected uint8 or float32 images [N, C, H, W] on the CPU, got {}",
                    features.toString()));
  return {shape[1], shape[2], shape[3], sizeOf(features.dtype())};
}

}  // namespace

void RandomCrop::apply(const ImageView& view, const std::byte* from, std::byte* to,
                       const RandomStream& random, std::uint64_t position) const {
  const auto down = shift(random, 2 * position, padding), right = shift(random, 2 * position + 1, padding);
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * view.elementBytes;
  };
  const std::size_t row = bytes(view.width);
  const std::int64_t kept = std::max<std::int64_t>(0, view.width - std::abs(right));
  const std::size_t begin = bytes(std::clamp<std::int64_t>(right, 0, view.width));  // visible part, in `to`
  const std::size_t source =
      bytes(std::clamp<std::int64_t>(-right, 0, view.width));  // visible part, in `from`
  for (std::int64_t c = 0; c < view.channels; ++c, from += row * static_cast<std::size_t>(view.height))
    for (std::int64_t y = 0; y < view.height; ++y, to += row) {
      const std::int64_t above = y - down;
      std::memset(to, 0, row);
      if (above >= 0 && above < view.height)
        std::memcpy(to + begin, from + static_cast<std::size_t>(above) * row + source, bytes(kept));
    }
}

void RandomCrop::validate() const {
  constexpr std::int64_t kMost = 1 << 20;
  require(padding >= 1 && padding <= kMost,
          "random crop: the padding must be between 1 and {} pixels, got {}", kMost, padding);
}

void RandomFlip::apply(const ImageView& view, const std::byte* from, std::byte* to,
                       const RandomStream& random, std::uint64_t position) const {
  const std::size_t row = static_cast<std::size_t>(view.width) * view.elementBytes;
  const std::int64_t rows = view.channels * view.height;
  if (random.uniform(position) >= probability) {
    std::memcpy(to, from, row * static_cast<std::size_t>(rows));
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r, from += row, to += row)
    view.elementBytes == 1 ? mirror<std::uint8_t>(from, to, view.width) : mirror<float>(from, to, view.width);
}

void RandomFlip::validate() const {
  require(probability > 0 && probability <= 1,
          "random flip: the probability must be above 0 and at most 1, got {}", probability);
}

TransformingIterator::TransformingIterator(DataSetIterator& inner, std::vector<ImageTransform> transforms,
                                           std::uint64_t seed)
    : inner_(inner), transforms_(std::move(transforms)), seed_(seed) {
  require(!transforms_.empty(), "image transform: there is none in the list");
  for (const auto& transform : transforms_) transform.validate();
  streams_.reserve(transforms_.size());
  beginEpoch(0);
}

void TransformingIterator::reset(std::int64_t epoch) {
  inner_.reset(epoch);
  beginEpoch(epoch);
}

void TransformingIterator::beginEpoch(std::int64_t epoch) {
  position_ = 0;
  streams_.clear();
  for (std::size_t i = 0; i < transforms_.size(); ++i)
    streams_.emplace_back(seed_, fmt::format("transform {} {}", i, transforms_[i].type()), epoch);
}

std::int64_t TransformingIterator::skip(std::int64_t batches) {
  const std::int64_t examples = inner_.skip(batches);
  position_ += static_cast<std::uint64_t>(examples);
  return examples;
}

bool TransformingIterator::next(Batch& batch) {
  if (!inner_.next(batch)) return false;
  const auto first = position_;
  position_ += static_cast<std::uint64_t>(batch.examples());
  require(!batch.features.empty(), "image transform: a batch without features");
  require(!batch.features.front().source,
          "image transform: it changes images on the CPU, so the data set must be placed there "
          "(MemoryPlacement::Host)");
  const Tensor& features = batch.features.front().value;
  const ImageView view = viewOf(features);
  const auto images = static_cast<std::uint64_t>(features.shape()[0]);
  const std::size_t bytes = images > 0 ? features.bytes() / images : 0;
  image_.resize(bytes);
  auto* at = static_cast<std::byte*>(features.raw());
  for (std::uint64_t i = 0; i < images; ++i, at += bytes)
    for (std::size_t t = 0; t < transforms_.size(); ++t) {
      std::memcpy(image_.data(), at, bytes);
      transforms_[t].apply(view, image_.data(), at, streams_[t], first + i);
    }
  return true;
}

}  // namespace muster
