#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/optim/state_block.h"

namespace muster::test {

/// The segment table of a block with a single vector.
inline std::shared_ptr<const SegmentTable> oneSegment(std::int64_t elements) {
  auto table = std::make_shared<SegmentTable>();
  table->segments = {{.name = "all", .shape = {elements}}};
  table->elements = elements;
  return table;
}

}  // namespace muster::test
