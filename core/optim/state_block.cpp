#include "muster/core/optim/state_block.h"

#include <algorithm>

#include "muster/core/base/error.h"

namespace muster {

constexpr std::int64_t kSegmentAlignment = 16;  // float32 elements in 64 bytes

void SegmentTable::add(Segment segment) {
  segment.offset = elements;
  elements += (segment.shape.elements() + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
  segments.push_back(std::move(segment));
}

const Segment* SegmentTable::find(std::string_view name) const {
  const auto found = std::ranges::find(segments, name, &Segment::name);
  return found == segments.end() ? nullptr : &*found;
}

Tensor StateBlock::segment(std::string_view segmentName) const {
  const Segment* found = segments->find(segmentName);
  require(found != nullptr, "block {}: there is no segment {}", name, segmentName);
  return segment(*found);
}

StateBlock StateBlock::zeros(std::string name, BlockKind kind, MergeRule merge,
                             std::shared_ptr<const SegmentTable> segments, DType dtype, Device device) {
  const Shape shape{segments->elements};
  return {std::move(name), kind, merge, Tensor::zeros(shape, dtype, device), std::move(segments)};
}

}  // namespace muster
