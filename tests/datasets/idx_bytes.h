#pragma once

#include "tests/support/standard.h"

namespace muster::test {

/// The head of an IDX file: two zeros, the type, the rank, and each size big-endian.
inline std::string idxHead(int type, const std::vector<std::uint32_t>& sizes) {
  std::string head{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const auto size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(size >> shift & 0xFF);
  return head;
}

/// An IDX file of bytes.
inline std::string idx(const std::vector<std::uint32_t>& sizes, const std::string& elements) {
  return idxHead(0x08, sizes) + elements;
}

}  // namespace muster::test
