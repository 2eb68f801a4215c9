#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "muster/core/nn/network.h"

namespace muster {

/// What a program keeps in a model file for itself, beside the network: texts by name.
using ModelNotes = std::map<std::string, std::string>;

/// Writes configuration and state, as `Network::save` does, and notes. Whole or not at all.
/// @throws InvalidArgument before `init()`, or for a note whose name the format needs itself ("format",
///         "configuration", "muster.version") or that is not UTF-8; FileError where the file cannot be
///         written.
void saveModel(Network& network, const std::filesystem::path& path, const ModelNotes& notes = {});

/// The notes in a model file; reads the whole file. @throws FileError.
ModelNotes readModelNotes(const std::filesystem::path& path);

/// Reads the state of a saved network into one of the same architecture: parameters, statistics, the
/// updater's state and the counters, all bit for bit, so that training goes on as if it had never stopped.
/// What else the configuration says (learning rate, seed, ...) stays as `network` has it.
///
/// `network` is initialised where it is not. It is not touched unless the whole file fits.
/// @throws FileError naming the layer that differs, or the tensor that is missing, unexpected or of another
///         shape or type.
void loadState(Network& network, const std::filesystem::path& path);

}  // namespace muster
