#include "muster/core/base/fields.h"

namespace muster {

void Fields::requireRank(std::string_view name, const Shape& shape, int rank) {
  require(shape.rank() == rank, "{}: expected {} numbers, got {}", name, rank, shape.toString());
}

}  // namespace muster
