#include "muster/core/listeners/checkpoint_listener.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/nn/network.h"

namespace muster {

CheckpointListener::CheckpointListener(CheckpointOptions options) : options_(std::move(options)) {
  require(options_.everyEpochs >= 1, "checkpoint listener: everyEpochs must be at least 1, got {}",
          options_.everyEpochs);
  require(options_.keepLast >= 0, "checkpoint listener: keepLast cannot be negative, got {}",
          options_.keepLast);
  require(!options_.baseName.empty() && options_.baseName.find('/') == std::string::npos,
          "checkpoint listener: \"{}\" cannot be the base of a file name", options_.baseName);
}

void CheckpointListener::onFitStart(const FitEvent& event) {
  require(options_.save || dynamic_cast<Network*>(&event.trainer.model()) != nullptr,
          "checkpoint listener: the model is not a Network; give a `save` function for it");
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error) throw FileError(options_.directory, "cannot be made: " + error.message());
}

void CheckpointListener::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (finished % options_.everyEpochs != 0) return;
  auto path = options_.directory / fmt::format("{}-epoch-{:04}.safetensors", options_.baseName, finished);
  saveTo(event.trainer.model(), path);
  std::erase(files_, path);  // an epoch trained again replaces its file
  files_.push_back(std::move(path));
  while (options_.keepLast > 0 && static_cast<std::int64_t>(files_.size()) > options_.keepLast)
    forgetOldest();
}

void CheckpointListener::saveTo(Model& model, const std::filesystem::path& path) const {
  if (options_.save) return options_.save(model, path);
  dynamic_cast<Network&>(model).save(path);
}

void CheckpointListener::forgetOldest() {
  std::error_code error;
  std::filesystem::remove(files_.front(), error);
  // A file that cannot be deleted does not end a training.
  if (error)
    logWarning("{}: an old checkpoint cannot be removed: {}", files_.front().string(), error.message());
  files_.pop_front();
}

}  // namespace muster
