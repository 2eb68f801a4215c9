#include "muster/core/base/utf8.h"

namespace muster {
namespace {

/// A lead byte: the character's length, the lead's bits, and the smallest code point of this length.
struct Form {
  std::size_t bytes;
  unsigned bits;
  char32_t least;
};

/// Length 0 if `lead` cannot start a character: 0xC0 and 0xC1 start overlong forms only, 0xF5 and above
/// exceed U+10FFFF.
Form formOf(unsigned lead) {
  if (lead < 0x80) return {1, lead, 0};
  if (lead >= 0xC2 && lead < 0xE0) return {2, lead & 0x1Fu, 0x80};
  if (lead >= 0xE0 && lead < 0xF0) return {3, lead & 0x0Fu, 0x800};
  if (lead >= 0xF0 && lead < 0xF5) return {4, lead & 0x07u, 0x10000};
  return {0, 0, 0};
}

unsigned byteAt(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

}  // namespace

Utf8Character readUtf8(std::string_view bytes) {
  const Form form = formOf(byteAt(bytes, 0));
  if (form.bytes == 0) return {};
  Utf8Character read{
      .character = static_cast<char32_t>(form.bits), .announced = form.bytes, .bytes = 1, .valid = false};
  for (; read.bytes < form.bytes; ++read.bytes) {
    if (read.bytes == bytes.size() || (byteAt(bytes, read.bytes) & 0xC0) != 0x80) return read;
    read.character = read.character << 6 | (byteAt(bytes, read.bytes) & 0x3F);
  }
  const bool isSurrogate = read.character >= 0xD800 && read.character <= 0xDFFF;
  read.valid = read.character >= form.least && read.character <= 0x10FFFF && !isSurrogate;
  return read;
}

bool isUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Character read = readUtf8(bytes);
    if (!read.valid) return false;
    bytes.remove_prefix(read.bytes);
  }
  return true;
}

std::size_t utf8Length(std::string_view bytes) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) length += (byteAt(bytes, i) & 0xC0) != 0x80 ? 1 : 0;
  return length;
}

}  // namespace muster
