#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>

#include "muster/core/nn/listener.h"

namespace muster {

struct CheckpointOptions {
  std::filesystem::path directory;  ///< created if it does not exist
  std::int64_t everyEpochs = 1;
  std::int64_t keepLast = 0;  ///< 0: all
  std::string baseName = "checkpoint";
  /// Writes a model. Empty: `Network::save`; other models need their own function.
  std::function<void(Model&, const std::filesystem::path&)> save = {};
};

/// Saves the merged model every N epochs as `<directory>/<baseName>-epoch-0003.safetensors` (the number of
/// epochs that the model has finished), and keeps the last K. Deletes only files that it has written itself,
/// after a newer one is complete.
class CheckpointListener final : public Listener {
 public:
  /// @throws InvalidArgument for everyEpochs < 1, keepLast < 0, or a baseName that is empty or contains a
  ///         slash.
  explicit CheckpointListener(CheckpointOptions options);

  /// @throws FileError if the directory cannot be created; InvalidArgument for a model that it cannot save.
  void onFitStart(const FitEvent& event) override;
  /// @throws FileError if the file cannot be written.
  void onEpochEnd(const EpochEvent& event) override;

  /// The files kept, oldest first.
  const std::deque<std::filesystem::path>& files() const { return files_; }

 private:
  void saveTo(Model& model, const std::filesystem::path& path) const;
  void forgetOldest();

  CheckpointOptions options_;
  std::deque<std::filesystem::path> files_;
};

}  // namespace muster
