#pragma once

#include <string_view>

namespace muster::detail {

/// The title of the last table in Evaluation::summary, by which programs recognise such a text.
inline constexpr std::string_view kConfusionTitle = "confusion matrix";

}  // namespace muster::detail
