#include "muster/core/nn/training_counters.h"

#include <algorithm>
#include <memory>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

/// Places in the block.
constexpr int kIteration = 0, kEpoch = 1, kUpdaterBegan = 2;  // the iteration at which its state was zero

StateBlock makeCounters() {
  auto table = std::make_shared<SegmentTable>();
  // Adjacent scalars: int64 needs no further alignment.
  table->segments = {{.name = "iteration", .shape = {}, .offset = 0, .regularised = false},
                     {.name = "epoch", .shape = {}, .offset = 1, .regularised = false},
                     {.name = "updaterBegan", .shape = {}, .offset = 2, .regularised = false}};
  table->elements = 3;
  return StateBlock::zeros("counters", BlockKind::Counters, MergeRule::Keep, table, DType::Int64);
}

std::int64_t& number(StateBlock& counters, int place) {
  return counters.values.data<std::int64_t>()[place];
}

std::int64_t number(const StateBlock& counters, int place) {
  return counters.values.data<std::int64_t>()[place];
}

}  // namespace

TrainingCounters::TrainingCounters() : counters_(makeCounters()) {}

std::int64_t TrainingCounters::iteration() const {
  return number(counters_, kIteration);
}

std::int64_t TrainingCounters::epoch() const {
  return number(counters_, kEpoch);
}

void TrainingCounters::setCounters(std::int64_t iteration, std::int64_t epoch) {
  number(counters_, kUpdaterBegan) -= std::max<std::int64_t>(0, number(counters_, kIteration) - iteration);
  number(counters_, kIteration) = iteration;
  number(counters_, kEpoch) = epoch;
}

std::int64_t TrainingCounters::updates() const {
  return std::max<std::int64_t>(0, number(counters_, kIteration) - number(counters_, kUpdaterBegan));
}

void TrainingCounters::setUpdates(std::int64_t count) {
  require(count >= 0, "model: an updater cannot have made {} updates", count);
  number(counters_, kUpdaterBegan) = number(counters_, kIteration) - count;
}

std::int64_t TrainingCounters::updatesAt(const BatchStamp& stamp) const {
  if (stamp.update > 0) return stamp.update;
  return std::max<std::int64_t>(1, stamp.iteration + 1 - number(counters_, kUpdaterBegan));
}

}  // namespace muster::detail
