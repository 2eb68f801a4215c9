#include "muster/core/base/printable_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/core/base/plural.h"
#include "muster/core/base/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kLongest = 4000;

bool isPrintable(const Utf8Character& read) {
  constexpr char32_t kDelete = 0x7F, kLastControl = 0x9F;
  return read.valid && read.character >= 0x20 && (read.character < kDelete || read.character > kLastControl);
}

/// Moves the first character of `text` to the end of `shown`.
void showOne(std::string_view& text, std::string& shown) {
  const Utf8Character read = readUtf8(text);
  const std::size_t bytes = std::max<std::size_t>(read.bytes, 1);
  if (isPrintable(read))
    shown += text.substr(0, bytes);
  else
    for (const char c : text.substr(0, bytes))
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  text.remove_prefix(bytes);
}

}  // namespace

std::string printableText(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= kLongest) return fmt::format("{}... ({} more)", shown, plural(text.size(), "byte"));
    showOne(text, shown);
  }
  return shown;
}

std::string printableLines(std::string_view text) {
  std::string shown;
  while (!text.empty())
    if (const char first = text.front(); first == '\n' || first == '\t') {
      shown += first;
      text.remove_prefix(1);
    } else {
      showOne(text, shown);
    }
  return shown;
}

}  // namespace muster
