#include "muster/parallel/training/first_batch.h"

#include "muster/core/base/log.h"
#include "muster/core/nn/scale_remark.h"
#include "muster/parallel/runtime/watched_iterator.h"

namespace muster {

void requireUpdater(Model& model) {
  for (const auto& block : model.blocks())
    if (block.kind == BlockKind::Parameters) {
      model.updaterState();
      return;
    }
}

void fitBeforeTraining(Model& model, DataSetIterator& data, Activity& caller) {
  caller.set(Activity::Kind::InIterator);
  try {
    model.fitBeforeTraining(data);
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("the training could not begin: {}", muster::describe(cause)), -1, cause);
  }
}

bool prepareModel(Model& model, DataSetIterator& data, Activity& caller, std::int64_t epoch,
                  const EpochPosition& begun, Batch& first) {
  WatchedIterator reading(data, caller);
  std::string where;
  try {
    first.stamp.firstExample = reading.reset(epoch, begun);
    if (!reading.next(first)) return false;
    where = "the model could not be prepared for its first batch";
    model.prepare(first);
    if (model.iteration() == 0)
      if (const auto remark = scaleRemark(model, first); !remark.empty()) logWarning("fit: {}", remark);
    return true;
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(
        fmt::format("{}: {}", where.empty() ? reading.failure() : where, muster::describe(cause)), -1, cause);
  }
}

}  // namespace muster
