#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/parallel/run/run_file.h"

namespace muster::detail {

/// The value of `training.mathMode`; empty: the device's default.
std::optional<MathMode> mathModeOf(const RunTraining& training);

/// Fields by path, such as {"training.workers", "4"}, with their values as JSON.
using RunSettings = std::vector<std::pair<std::string, std::string>>;

/// All fields of a run, also those that its file leaves to their defaults, in the same form for any spelling
/// in the file: runs that mean the same have the same fields.
RunSettings fieldsOf(const RunFile& run);

/// The fields that decide a training's bits.
RunSettings decisiveFields(const RunFile& run);

/// Whether a run may resume one in which this decisive field has another value.
bool mayDiffer(std::string_view path);

}  // namespace muster::detail
