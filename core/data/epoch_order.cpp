#include "muster/core/data/epoch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"

namespace muster {
namespace {

std::size_t checkedCount(std::int64_t count) {
  require(count >= 0, "epoch order: the number of examples cannot be negative, got {}", count);
  return static_cast<std::size_t>(count);
}

}  // namespace

EpochOrder::EpochOrder(std::int64_t count, std::optional<std::uint64_t> shuffleSeed)
    : order_(checkedCount(count)), seed_(shuffleSeed) {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  reset(0);
}

void EpochOrder::keepFull(std::int64_t batch) {
  require(batch >= 1, "epoch order: a batch needs at least 1 example, got {}", batch);
  each_ = batch;
}

void EpochOrder::reset(std::int64_t epoch) {
  position_ = 0;
  if (!seed_) return;
  // Start from the identity, so that an epoch's order does not depend on earlier epochs.
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  const RandomStream stream(*seed_, "shuffle", epoch);
  for (std::size_t i = order_.size(); i-- > 1;) std::swap(order_[i], order_[stream.below(i, i + 1)]);
}

std::span<const std::int64_t> EpochOrder::take(std::int64_t most) {
  const auto taken = at(position_, most);
  position_ += static_cast<std::int64_t>(taken.size());
  return taken;
}

std::span<const std::int64_t> EpochOrder::at(std::int64_t position, std::int64_t most) const {
  const auto begin = std::clamp<std::int64_t>(position, 0, count());
  const auto taken = std::clamp<std::int64_t>(most, 0, count() - begin);
  return std::span<const std::int64_t>(order_).subspan(static_cast<std::size_t>(begin),
                                                       static_cast<std::size_t>(taken));
}

std::int64_t EpochOrder::skip(std::int64_t batches, std::int64_t batch) {
  const std::int64_t left = (remaining() + batch - 1) / batch;
  // Clamp first: a number read from a file may overflow the product.
  return static_cast<std::int64_t>(take(batch * std::clamp<std::int64_t>(batches, 0, left)).size());
}

}  // namespace muster
