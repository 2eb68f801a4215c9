#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace muster {

/// A number and its noun for a message: "1 epoch", "2 epochs", "0 batches".
/// @param many  the noun's plural; empty: `one` with an "s".
/// It allocates memory, so code that runs in each step calls it only to build an error message.
std::string plural(std::integral auto number, std::string_view one, std::string_view many = {}) {
  if (number == 1) return fmt::format("{} {}", number, one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

}  // namespace muster
