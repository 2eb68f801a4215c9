#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace example {

/// What decides a trained network's bits: options or fields by name, with their values.
using Settings = std::map<std::string, std::string>;

/// Compares a training with the one whose checkpoint it resumes. A setting that one of them lacks is "unset".
/// @param file      the checkpoint, for the error.
/// @param saved     settings of the training that wrote it.
/// @param now       settings of the one that resumes it.
/// @param mayDiffer whether a setting may change. It changes the bits, but not what is trained.
/// @param by        for the error, as in "by this run".
/// @return the settings that differ and may, for example "--workers 2 (now 4)"; "" if none differ.
/// @throws muster::FileError that names the other settings that differ.
std::string allowedChanges(const std::filesystem::path& file, const Settings& saved, const Settings& now,
                           const std::function<bool(std::string_view name)>& mayDiffer, std::string_view by);

}  // namespace example
