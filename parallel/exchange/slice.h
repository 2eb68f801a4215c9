#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/optim/state_block.h"

namespace muster {

/// Elements [begin, end) of a block.
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t length() const { return end - begin; }
};

/// The slice of a block that one participant reduces: slices are about equally long and begin at a cache
/// line.
Slice sliceOf(std::int64_t elements, int participant, int participants);
/// The part of a slice that is in the participant's slice of the block: which participant reduces an element
/// depends only on the element.
Slice partOf(Slice slice, std::int64_t elements, int participant, int participants);

/// A part of the parameters that is merged by itself: a list of segments, with the padding after each.
struct Fragment {
  std::vector<Slice> slices;  // in the order of the block, adjacent ones joined

  std::int64_t elements() const;
  /// All elements.
  static Fragment whole(std::int64_t elements) { return {{{0, elements}}}; }
};

/// Divides the segments among `count` fragments of about equal size: largest segment first, each to the
/// fragment that is smallest so far. At most as many fragments as segments. @throws InvalidArgument unless
/// count >= 1.
std::vector<Fragment> fragmentsOf(const SegmentTable& segments, int count);

}  // namespace muster
