#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <set>
#include <string>

#include "muster/core/io/checkpoint_files.h"

namespace muster::detail {

/// The checkpoint files of one training: keeps the last ones and every N-th epoch's, and deletes the others.
class KeptCheckpoints {
 public:
  /// @param last  how many are kept; 0: all. @param everyEpochs  the end of each N-th epoch is kept, too, and
  ///              not counted; 0: of none.
  KeptCheckpoints(std::filesystem::path directory, std::string baseName, std::int64_t last,
                  std::int64_t everyEpochs);

  std::filesystem::path path(const CheckpointPlace& place) const;
  /// Whether the checkpoint is kept, however many follow.
  bool isForGood(const CheckpointPlace& place) const;
  /// The training goes on in the directory: its checkpoints there count, unless this object knows some.
  /// @throws FileError for a directory that cannot be read.
  void takeOver();
  /// The checkpoint's file is complete: deletes those that are too many.
  void add(const CheckpointPlace& place);
  /// Deletes the oldest that are too many. Logs a warning for a file that cannot be deleted.
  void removeOld();

  /// The checkpoints that are counted, oldest first.
  const std::deque<std::filesystem::path>& files() const { return files_; }
  /// The files in the directory that are this training's.
  const std::set<std::filesystem::path>& own() const { return own_; }
  /// Another file is this training's.
  void addOwn(const std::filesystem::path& file) { own_.insert(file); }

 private:
  std::filesystem::path directory_;
  std::string baseName_;
  std::int64_t last_, everyEpochs_;
  std::deque<std::filesystem::path> files_;
  std::set<std::filesystem::path> own_;
};

}  // namespace muster::detail
