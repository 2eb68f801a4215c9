#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <new>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster::detail {

/// Memory has run out in a call on a file: "load: model.safetensors: memory has run out". Making it allocates
/// nothing, so it always has its text; a text of more than a kilobyte is cut off.
class FileShortage final : public OutOfMemory {
 public:
  FileShortage(std::string_view call, const std::filesystem::path& file, std::string_view why) noexcept
      : OutOfMemory(kText) {
    const auto begin = fmt::format_to_n(text_.data(), kMost, "{}: {}: ", call, file.native());
    why_ = std::min(begin.size, kMost);
    const auto end = fmt::format_to_n(text_.data() + why_, kMost - why_, "{}", why);
    text_[why_ + std::min(end.size, kMost - why_)] = '\0';
  }
  const char* what() const noexcept override { return text_.data(); }
  /// The text without call and file.
  const char* why() const noexcept { return text_.data() + why_; }

 private:
  static constexpr std::size_t kMost = 1023;
  /// The base class gets a copy, which shares its memory.
  static inline const OutOfMemory kText{"memory has run out"};

  std::array<char, kMost + 1> text_;
  std::size_t why_ = 0;
};

/// Calls `work`. If memory runs out, the error names the call and its file.
/// @throws OutOfMemory; what `work` throws.
template <typename Work>
decltype(auto) onFile(std::string_view call, const std::filesystem::path& file, Work work) {
  try {
    return work();
  } catch (const FileShortage& error) {  // of a call in it
    throw FileShortage(call, file, error.why());
  } catch (const OutOfMemory& error) {
    throw FileShortage(call, file, error.what());
  } catch (const std::bad_alloc&) {
    throw FileShortage(call, file, "memory has run out");
  }
}

}  // namespace muster::detail
