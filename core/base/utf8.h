#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

/// The result of `readUtf8`.
struct Utf8Character {
  char32_t character = 0;
  /// The character's length by its first byte; 0 if no character begins with that byte.
  std::size_t announced = 0;
  /// Number of these bytes that are valid. If all are, but the character is not, it is overlong or not a code
  /// point (surrogates, beyond U+10FFFF).
  std::size_t bytes = 0;
  bool valid = false;
};

/// Reads the character at the start of `bytes`, which must not be empty. Source: The Unicode Standard,
/// section 3.9, table 3-7.
Utf8Character readUtf8(std::string_view bytes);
/// Whether all of it is UTF-8.
bool isUtf8(std::string_view bytes);
/// The number of its characters: of the bytes that do not continue one.
std::size_t utf8Length(std::string_view bytes);

}  // namespace muster
