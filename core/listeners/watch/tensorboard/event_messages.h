#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/listeners/watch/histogram.h"
#include "muster/core/listeners/watch/hyper_parameter.h"

// The bytes of TensorBoard's events. Each has the time of the call.

namespace muster::events {

/// A file's first record.
std::string version();
/// The training continues here: TensorBoard drops what earlier files of the directory have from `step` on.
std::string restart(std::int64_t step);
std::string scalar(std::string_view tag, std::int64_t step, double value);
std::string histogram(std::string_view tag, std::int64_t step, const Histogram& histogram);
/// @param markdown  UTF-8; other bytes become "\\xff".
std::string text(std::string_view tag, std::string_view markdown);

/// The columns of the table of runs: options, and scalars that are results.
std::string experiment(const std::vector<HyperParameter>& parameters,
                       const std::vector<std::string>& metrics);
std::string runStart(const std::vector<HyperParameter>& parameters, std::string_view group);
/// @param finished  whether all epochs were trained.
std::string runEnd(bool finished);

}  // namespace muster::events
