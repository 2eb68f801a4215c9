#pragma once

#include <fmt/format.h>

#include "tests/support/standard.h"

namespace muster::test {

/// One entry of a tar archive as GNU tar and POSIX write it: a header of 512 bytes, then the contents filled
/// up to whole blocks.
/// @param type  '0' a file, '5' a folder.  @param prefix  of the name, in ustar's field for it.
inline std::string tarEntry(const std::string& name, const std::string& contents, char type = '0',
                            const std::string& prefix = "") {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& field) { header.replace(at, field.size(), field); };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", contents.size()));
  put(136, "11270357070");
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(345, prefix);
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
}

/// The end mark of an archive.
inline std::string tarEnd() {
  return std::string(1024, '\0');
}

}  // namespace muster::test
