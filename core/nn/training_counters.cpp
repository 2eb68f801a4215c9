#include "muster/core/nn/training_counters.h"

#include <algorithm>
#include <memory>

#include "muster/core/base/error.h"

namespace muster {
namespace {

StateBlock makeCounters() {
  auto table = std::make_shared<SegmentTable>();
  // Adjacent scalars: int64 needs no further alignment.
  table->segments = {{.name = "iteration", .shape = {}, .offset = 0, .regularised = false},
                     {.name = "epoch", .shape = {}, .offset = 1, .regularised = false},
                     {.name = "updaterBegan", .shape = {}, .offset = 2, .regularised = false}};
  table->elements = 3;
  return StateBlock::zeros("counters", BlockKind::Counters, MergeRule::Keep, table, DType::Int64);
}

}  // namespace

TrainingCounters::TrainingCounters() : counters_(makeCounters()) {}

void TrainingCounters::setCounters(std::int64_t iteration, std::int64_t epoch) {
  number(UpdaterBegan) -= std::max<std::int64_t>(0, number(Iteration) - iteration);
  number(Iteration) = iteration;
  number(Epoch) = epoch;
}

std::int64_t TrainingCounters::updates() const {
  return std::max<std::int64_t>(0, number(Iteration) - number(UpdaterBegan));
}

void TrainingCounters::setUpdates(std::int64_t count) {
  require(count >= 0, "model: an updater cannot have made {} updates", count);
  number(UpdaterBegan) = number(Iteration) - count;
}

std::int64_t TrainingCounters::updatesAt(const BatchStamp& stamp) const {
  if (stamp.update > 0) return stamp.update;
  return std::max<std::int64_t>(1, stamp.iteration + 1 - number(UpdaterBegan));
}

}  // namespace muster
