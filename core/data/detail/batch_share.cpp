#include "muster/core/data/detail/batch_share.h"

#include <utility>

namespace muster::detail {

void BatchShareGuess::begin() {
  learns_ = true;
  previous_.reset();
}

std::optional<BatchShare> BatchShareGuess::note(std::int64_t batch) {
  const std::int64_t distance = previous_ ? batch - *previous_ : 0;
  previous_ = batch;
  const bool again = std::exchange(distance_, distance) == distance;
  if (!learns_ || !again || distance <= 1 || distance > kLongestPeriod) return {};
  const auto period = static_cast<std::int32_t>(distance);
  return BatchShare{period, static_cast<std::int32_t>(batch % distance)};
}

}  // namespace muster::detail
