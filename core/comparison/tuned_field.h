#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A field to tune, and the values to try, as in `learningRate=0.01,0.1`.
struct TunedField {
  std::string name;
  std::vector<std::string> values;

  /// @param text  without "=" it has no values. Blanks beside a value are no part of it.
  static TunedField of(std::string_view text);
  std::string text() const;
  /// Whether it has a value that is the same, as 0.1 and 0.10 are the same number.
  bool has(std::string_view value) const;
};

/// What is tried if more values join those that were tried: each field with its values of `before` and then
/// those of `now`, each once. Nothing if their fields are not the same.
std::optional<std::vector<std::string>> joinTuning(std::span<const std::string> before,
                                                   std::span<const std::string> now);

}  // namespace muster
