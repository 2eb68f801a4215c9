#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>

#include "muster/core/nn/listener.h"

namespace muster {

struct CheckpointOptions {
  std::filesystem::path directory;  ///< made where it is missing
  std::int64_t everyEpochs = 1;
  std::int64_t keepLast = 0;  ///< 0: all
  std::string baseName = "checkpoint";
  /// How a model is written. Empty: `Network::save`; other models need a function of their own.
  std::function<void(Model&, const std::filesystem::path&)> save = {};
};

/// Saves the merged model every N epochs as `<directory>/<baseName>-epoch-0003.safetensors` (the number of
/// epochs the model has finished), and keeps the last K. It deletes only files that it has written itself,
/// and only after a newer one is whole.
class CheckpointListener final : public Listener {
 public:
  /// @throws InvalidArgument for everyEpochs < 1, keepLast < 0, or a baseName that is empty or holds a slash.
  explicit CheckpointListener(CheckpointOptions options);

  /// @throws FileError where the directory cannot be made; InvalidArgument for a model it cannot save.
  void onFitStart(const FitEvent& event) override;
  /// @throws FileError where the file cannot be written.
  void onEpochEnd(const EpochEvent& event) override;

  /// The files that it keeps, oldest first.
  const std::deque<std::filesystem::path>& files() const { return files_; }

 private:
  void saveTo(Model& model, const std::filesystem::path& path) const;
  void forgetOldest();

  CheckpointOptions options_;
  std::deque<std::filesystem::path> files_;
};

}  // namespace muster
