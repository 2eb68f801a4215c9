#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "muster/core/listeners/monitored.h"

namespace muster::detail {

/// The note of a model file that has the monitored value of the model, as in `validation accuracy, max:
/// 0.98`.
inline constexpr std::string_view kBestValueNote = "earlyStopping.value";

std::string bestValueNote(const Monitored& monitored, double value);
/// The value that the file notes; nothing without a file or a note of this monitor.
/// @throws FileError for a file that is not a model file.
std::optional<double> readBestValue(const std::filesystem::path& file, const Monitored& monitored);

}  // namespace muster::detail
