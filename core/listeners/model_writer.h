#pragma once

#include <filesystem>
#include <future>
#include <memory>

#include "muster/core/io/model_file.h"

namespace muster {

/// Writes model files on another thread, one at a time, from a copy of the model. All writers of a process
/// write in the order of their `write` calls, so no checkpoint is complete before the files that listeners
/// began earlier. Use it from one thread.
class ModelWriter {
 public:
  /// Waits for this writer's last file, copies the network's state, and begins to write the copy.
  /// @throws FileError if the last file could not be written, or if this one cannot be opened;
  ///         InvalidArgument as saveModel; OutOfMemory naming the file.
  void write(Network& network, const TrainingState& training, const ModelNotes& notes,
             const std::filesystem::path& path);
  /// Whether a file is being written.
  bool busy() const;
  /// Whether `write` was called since the last `finish`.
  bool begun() const { return written_.valid(); }
  /// Waits for the file. @throws FileError or OutOfMemory if it could not be written; it then keeps its old
  /// content.
  void finish();

 private:
  std::shared_ptr<ModelSnapshot> snapshot_;  // the thread reads it while it writes
  std::future<void> written_;                // last: it waits for the thread
};

}  // namespace muster
