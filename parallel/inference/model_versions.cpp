#include "muster/parallel/inference/model_versions.h"

#include "muster/core/nn/layer_difference.h"
#include "muster/parallel/runtime/replica_thread.h"

namespace muster {
namespace {

void requireSameForm(Model& model, Model& served) try {
  requireCopy(blocksOf(model), blocksOf(served), "the served model's");
  const auto difference = layerDifference(model, served, "the served model's");
  require(difference.empty(), "{}", difference);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("updateModel: the model is of another form: {}", error.what()));
}

}  // namespace

ModelVersions::ModelVersions(Model& model)
    : current_(new Version{.number = 1, .context = Context(), .model = {}}) {
  model.requireNotTrainedElsewhere("parallel inference");
  model.block(BlockKind::Parameters);  // throws if the model is not initialised
  current_->model = model.replicate(current_->context);
  current_->model->copyStateFrom(model, /*withUpdaterState=*/false);
}

std::shared_ptr<ModelVersions::Version> ModelVersions::current() const {
  const Lock lock(mutex_);
  return current_;
}

std::shared_ptr<const Model> ModelVersions::model() const {
  const auto version = current();
  return {version, version->model.get()};
}

std::int64_t ModelVersions::publish(Model& model) {
  model.requireNotTrainedElsewhere("parallel inference: updateModel");
  const Lock publishing(publishing_);
  const auto old = current();
  requireSameForm(model, *old->model);
  const std::shared_ptr<Version> next(
      new Version{.number = old->number + 1, .context = Context(), .model = {}});
  next->model = old->model->replicate(next->context);
  next->model->copyStateFrom(model, /*withUpdaterState=*/false);
  const Lock lock(mutex_);
  current_ = next;
  return next->number;
}

void ModelVersions::bring(Model& replica, std::int64_t& version) const {
  const auto latest = current();
  if (version == latest->number) return;
  version = 0;
  {
    const Lock lock(latest->mutex);
    replica.copyStateFrom(*latest->model, /*withUpdaterState=*/false);
  }
  version = latest->number;
}

}  // namespace muster
