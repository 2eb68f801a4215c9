#include "muster/core/nn/fit_remarks.h"

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"

namespace muster {
namespace {

std::string remarkOnSchedule(const Model& model, std::int64_t epochs, std::int64_t batches,
                             std::int64_t workers) {
  const Schedule& rate = model.trainingOptions().updater.learningRate();
  const std::int64_t length = rate.iterations().value_or(0);  // 0: constant, or not known
  const std::int64_t perEpoch = (batches + workers - 1) / workers;
  const std::int64_t end = model.iteration() + epochs * perEpoch;
  if (length == 0 || epochs <= 1 || batches == 0) return {};
  const auto why = workers == 1 ? fmt::format("{} per epoch", plural(batches, "batch", "batches"))
                                : fmt::format("an epoch's {} batches are {} of {} workers", batches,
                                              plural(perEpoch, "iteration"), workers);
  if (end < length)
    return fmt::format(
        "the learning rate's schedule ({}) takes {} iterations, and the training ends after {} ({}), at a "
        "rate of {:.3g}; a schedule in epochs does not depend on the number of workers",
        rate.type(), length, end, why, rate.at(end - 1, model.epoch() + epochs - 1));
  if (end - length > perEpoch && rate.at(length, model.epoch()) == 0)
    return fmt::format(
        "the learning rate's schedule ({}) is 0 after {} iterations, and the training goes on to {} ({}); a "
        "schedule in epochs does not depend on the number of workers",
        rate.type(), length, end, why);
  return {};
}

}  // namespace

std::vector<std::string> fitRemarks(const Model& model, std::int64_t epochs, std::int64_t batches,
                                    std::int64_t workers) {
  std::vector<std::string> remarks;
  if (batches > 0 && batches < workers)
    remarks.push_back(
        fmt::format("an epoch has {}, so {} of {} workers train nothing in it; take fewer workers "
                    "or smaller batches",
                    plural(batches, "batch", "batches"), workers - batches, workers));
  if (auto remark = remarkOnSchedule(model, epochs, batches, workers); !remark.empty())
    remarks.push_back(std::move(remark));
  return remarks;
}

}  // namespace muster
