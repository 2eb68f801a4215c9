#include "muster/core/base/byte_text.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

std::string byteText(double bytes) {
  for (const auto& [factor, unit] : {std::pair(1e12, "TB"), {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}})
    if (bytes >= factor) return fmt::format("{:.3g} {}", bytes / factor, unit);
  return fmt::format("{:.3g} B", bytes);
}

}  // namespace muster
