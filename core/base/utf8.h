#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

/// What `readUtf8` found.
struct Utf8Character {
  char32_t character = 0;
  /// How many it should take, as its first byte says; 0 where no character begins so.
  std::size_t announced = 0;
  /// How many of these could stand as they do. All of them, and still no character, are longer than need be
  /// or no code point (surrogates, beyond U+10FFFF).
  std::size_t bytes = 0;
  bool valid = false;
};

/// Reads the character that `bytes`, at least one, begin with.
/// Source: The Unicode Standard, section 3.9, table 3-7.
Utf8Character readUtf8(std::string_view bytes);

bool isUtf8(std::string_view bytes);

}  // namespace muster
