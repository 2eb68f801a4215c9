#include "muster/datasets/image_set_iterator.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

std::shared_ptr<const ImageSet> checked(std::shared_ptr<const ImageSet> set, std::int64_t limit) {
  require(set != nullptr, "image iterator: there is no image set");
  require(limit >= 1, "image iterator: the limit must be at least 1 example, got {}", limit);
  return limited(std::move(set), limit);
}

}  // namespace

ImageSetIterator::ImageSetIterator(std::shared_ptr<const ImageSet> set, std::int64_t batch,
                                   std::optional<std::uint64_t> shuffleSeed, std::int64_t limit)
    : set_(checked(std::move(set), limit)), batch_(batch), order_(set_->size(), shuffleSeed) {
  require(batch >= 1, "image iterator: a batch needs at least 1 example, got {}", batch);
}

struct ImageSetIterator::Resident {
  explicit Resident(std::shared_ptr<const ImageSet> s)
      : set(std::move(s)), pixels(pixelsOf(*set)), labels(labelsOf(*set)) {}

  /// A view of the set's pixels; it is only read.
  static Tensor pixelsOf(const ImageSet& set) {
    auto* const bytes = const_cast<std::uint8_t*>(set.pixels().data());
    return Tensor::view(bytes, set.imageShape().prepend(set.size()), DType::UInt8);
  }
  static Tensor labelsOf(const ImageSet& set) {
    Tensor labels = Tensor::empty({set.size()}, DType::Int64);
    for (std::int64_t i = 0; i < set.size(); ++i) labels.data<std::int64_t>()[i] = set.label(i);
    return labels;
  }

  std::shared_ptr<const ImageSet> set;  // owns the memory of `pixels`
  ResidentTensor pixels, labels;
};

void ImageSetIterator::setFeatures(DType type) {
  require(type == DType::Float32 || type == DType::UInt8,
          "image iterator: features are float32 or uint8, not {}", toString(type));
  type_ = type;
}

void ImageSetIterator::setPlacement(MemoryPlacement placement) {
  if (placement == MemoryPlacement::Host) resident_ = nullptr;
  if (placement == MemoryPlacement::Device && !resident_) resident_ = std::make_shared<const Resident>(set_);
}

void ImageSetIterator::nameRows(std::span<const std::int64_t> indices, Batch& batch) const {
  const auto name = [&](std::vector<NamedTensor>& into, std::string_view what, const ResidentTensor& source) {
    const Shape shape{static_cast<std::int64_t>(indices.size())};
    std::ranges::copy(indices, Batch::ensureOnly(into, what, shape, DType::Int64).data<std::int64_t>());
    into.front().source = std::shared_ptr<const ResidentTensor>(resident_, &source);  // keeps the set alive
  };
  name(batch.features, "features", resident_->pixels);
  name(batch.labels, "labels", resident_->labels);
  batch.masks.clear();
}

bool ImageSetIterator::next(Batch& batch) {
  const auto indices = order_.take(batch_);
  if (indices.empty()) return false;
  fill(indices, batch);
  return true;
}

void ImageSetIterator::readBatch(std::int64_t number, Batch& batch) const {
  fill(order_.at(number * batch_, batch_), batch);
}

void ImageSetIterator::fill(std::span<const std::int64_t> indices, Batch& batch) const {
  if (resident_) return nameRows(indices, batch);
  const auto count = static_cast<std::int64_t>(indices.size());
  Tensor& features = Batch::ensureOnly(batch.features, "features", set_->imageShape().prepend(count), type_);
  Tensor& labels = Batch::ensureOnly(batch.labels, "labels", {count}, DType::Int64);
  batch.masks.clear();

  std::int64_t* label = labels.data<std::int64_t>();
  for (const auto index : indices) *label++ = set_->label(index);
  if (type_ == DType::UInt8) {
    std::uint8_t* byte = features.data<std::uint8_t>();
    for (const auto index : indices) byte = std::ranges::copy(set_->image(index), byte).out;
    return;
  }
  float* pixel = features.data<float>();
  for (const auto index : indices) {
    const auto bytes = set_->image(index);
    for (std::size_t i = 0; i < bytes.size(); ++i) pixel[i] = static_cast<float>(bytes[i]) / 255.0f;
    pixel += bytes.size();
  }
}

}  // namespace muster
