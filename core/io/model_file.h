#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "muster/core/io/safetensors.h"
#include "muster/core/nn/network.h"

namespace muster {

/// A program's own data in a model file: texts by name.
using ModelNotes = std::map<std::string, std::string>;

// If memory runs out in one of these calls, OutOfMemory names the call and the file.

/// A copy of what a model file holds, which may be written later, and by another thread.
struct ModelSnapshot {
  Safetensors contents;

  /// @param training  makes the file a checkpoint; empty: the file is the model alone.
  /// @throws InvalidArgument as saveModel.
  ModelSnapshot(Network& network, const TrainingState& training, const ModelNotes& notes = {}) {
    take(network, training, notes);
  }
  /// Replaces the contents in the same memory: new memory for each checkpoint costs more time than the copy.
  /// Not while it is being written. @throws as above; the contents are then not usable.
  void take(Network& network, const TrainingState& training, const ModelNotes& notes = {});
  /// Completely or not at all, with checksums of the header and every tensor. @throws FileError.
  void write(const std::filesystem::path& path) const;
};

/// Writes configuration and state, with Model::trainingState(), as `Network::save` does, and notes:
/// completely or not at all, with checksums of the header and every tensor.
/// @throws InvalidArgument before `init()`, or for a note whose name the format uses ("format",
///         "configuration", "muster.version", ...) or that is not UTF-8; FileError if the file cannot be
///         written.
void saveModel(Network& network, const std::filesystem::path& path, const ModelNotes& notes = {});

/// The notes in a model file; reads the whole file. @throws FileError.
ModelNotes readModelNotes(const std::filesystem::path& path);

/// The input description in a model file; empty if there is none. Reads the whole file. @throws FileError.
InputDescription readInputDescription(const std::filesystem::path& path);

/// Reads a whole model file. @throws FileError for one that is cut off or damaged, naming the header or the
///         tensor whose checksum does not match.
void checkModelFile(const std::filesystem::path& path);

/// Whether two model files hold the same state of a network, bit for bit: parameters, statistics, the
/// updater's state and the counters. What strategies, listeners and the position in the data add may differ,
/// so a checkpoint and the model that was saved after it can be the same. Does not compare configurations.
/// False if one of the files cannot be read.
bool holdSameState(const std::filesystem::path& one, const std::filesystem::path& other);

/// Reads the state of a saved network into one of the same architecture: parameters, statistics, the
/// updater's state and the counters, bit for bit, so that training continues exactly. Other parts of the
/// configuration (learning rate, seed, ...) are those of `network`. The input description becomes the file's,
/// if it has one.
///
/// Initialises `network` if necessary. Does not change it unless the whole file fits.
/// @throws FileError naming the layer, class or column that differs, also in its filling or scale (read the
///         data by `readInputDescription` then), or the tensor that is missing, unexpected or of another
///         shape or type.
void loadState(Network& network, const std::filesystem::path& path);

/// Reads the parameters and statistics of a saved network into one of the same architecture that has not been
/// trained, as the start of another training: its counters are zero, and its updater, which may be another
/// one, begins anew. Otherwise as `loadState`.
void loadParameters(Network& network, const std::filesystem::path& path);

}  // namespace muster
