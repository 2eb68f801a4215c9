#include "muster/parallel/worker/dispatcher.h"

#include "muster/core/base/error.h"

namespace muster {
namespace {

/// Deals one epoch. @return false when nothing more is to be dealt.
bool dealEpoch(FitRun& run, DataSetIterator& data, int workers, BatchStamp& stamp, Activity& activity) {
  activity.set(Activity::Kind::InIterator);
  data.reset(stamp.epoch);
  const std::int64_t firstIteration = stamp.iteration;
  while (!run.stopping()) {
    activity.set(Activity::Kind::WaitingForRoom);
    const auto batch = run.freeBatches().pop();
    if (!batch) return false;
    activity.set(Activity::Kind::InIterator, stamp.sequence);
    if (run.stopping() || !data.next(**batch)) {
      run.freeBatches().push(*batch);
      break;
    }
    require((*batch)->examples() > 0, "the iterator gave a batch without examples");
    (*batch)->stamp = stamp;
    activity.set(Activity::Kind::WaitingForRoom);
    if (!run.queue(static_cast<int>(stamp.sequence % workers)).push(*batch)) return false;
    stamp.firstExample += (*batch)->examples();
    ++stamp.sequence;
    stamp.iteration = firstIteration + stamp.sequence / workers;
  }
  stamp.iteration = firstIteration + (stamp.sequence + workers - 1) / workers;
  for (int w = 0; w < workers; ++w)
    if (!run.queue(w).push(nullptr)) return false;
  return !run.stopping();
}

}  // namespace

void dispatch(FitRun& run, DataSetIterator& data, int workers, std::int64_t epochs, Activity& activity) {
  BatchStamp stamp{.epoch = run.firstEpoch(), .iteration = run.firstIteration()};
  try {
    for (std::int64_t e = 0; e < epochs; ++e) {
      stamp.sequence = stamp.firstExample = 0;
      if (!dealEpoch(run, data, workers, stamp, activity)) break;
      ++stamp.epoch;
    }
  } catch (...) {
    run.fail(-1, fmt::format("the data iterator failed at batch {} of epoch {}", stamp.sequence, stamp.epoch),
             std::current_exception());
  }
  activity.set(Activity::Kind::Idle);
}

}  // namespace muster
