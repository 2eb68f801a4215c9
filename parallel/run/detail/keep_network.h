#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "muster/core/nn/model.h"

namespace muster::detail {

/// Where and how a network is kept that diverged.
struct Beside {
  std::filesystem::path file = {};  ///< the usual file, which stays as it is
  /// Writes the network, which may be as it was before a bad step, to another file; false if there is nothing
  /// to write, as nothing was trained. Empty: it is not kept.
  std::function<bool(const std::filesystem::path&)> write = {};
};

/// Trains, then saves. If `train` fails (for example in an iterator, or because a checkpoint cannot be
/// written), saves the network trained so far, then rethrows the exception. If the training diverged
/// (NonFiniteScore from `train` or `save`), it does not touch the usual file: it writes the network
/// beside it, to "model-diverged.safetensors" if that is called "model.safetensors", and says so. So nothing
/// is lost if the training was better than its last numbers, or if only one example was bad.
/// @param setting  the learning rate, as in "network.updater.learningRate 0.1", for the message of a diverged
///         training.
void trainAndSave(const std::function<void()>& train, const std::function<void(bool failed)>& save,
                  const std::string& setting, const Beside& beside);

/// The bytes of a model's state in a file.
std::int64_t savedBytes(Model& model);

/// Before a training: throws if the disk of a file, or of a directory of files, has less room. Does nothing
/// for an empty path. @throws FileError.
void requireDiskRoom(const std::filesystem::path& path, std::int64_t bytes);

/// Calls `write(path)`. If the file cannot be written, for example on a full disk, tries a file in other
/// directories: the one for temporary files (TMPDIR), the home directory, /var/tmp, /tmp and, in memory,
/// /dev/shm. Throws an error that names the file written there.
/// @throws Error.
void writeHereOrElsewhere(const std::filesystem::path& path,
                          const std::function<void(const std::filesystem::path&)>& write);

}  // namespace muster::detail
