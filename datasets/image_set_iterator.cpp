#include "muster/datasets/image_set_iterator.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"

namespace muster {
namespace {

std::int64_t checkedCount(const std::shared_ptr<const ImageSet>& set, std::int64_t limit) {
  require(set != nullptr, "image iterator: there is no image set");
  require(limit >= 1, "image iterator: the limit must be at least 1 example, got {}", limit);
  return std::min(set->size(), limit);
}

}  // namespace

ImageSetIterator::ImageSetIterator(std::shared_ptr<const ImageSet> set, std::int64_t batch,
                                   std::optional<std::uint64_t> shuffleSeed, std::int64_t limit)
    : set_(std::move(set)), batch_(batch), order_(checkedCount(set_, limit), shuffleSeed) {
  require(batch >= 1, "image iterator: a batch needs at least 1 example, got {}", batch);
}

bool ImageSetIterator::next(Batch& batch) {
  const auto indices = order_.take(batch_);
  if (indices.empty()) return false;
  const auto count = static_cast<std::int64_t>(indices.size());
  const Tensor& features = Batch::ensureOnly(batch.features, "features", set_->imageShape().prepend(count));
  const Tensor& labels = Batch::ensureOnly(batch.labels, "labels", {count}, DType::Int64);
  batch.masks.clear();

  float* pixel = features.data<float>();
  std::int64_t* label = labels.data<std::int64_t>();
  for (const auto index : indices) {
    const auto bytes = set_->image(index);
    for (std::size_t i = 0; i < bytes.size(); ++i) pixel[i] = static_cast<float>(bytes[i]) / 255.0f;
    pixel += bytes.size();
    *label++ = set_->label(index);
  }
  return true;
}

}  // namespace muster
