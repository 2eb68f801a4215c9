#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace muster {

/// The MD5 sum in 32 lower-case hexadecimal digits; to recognise published files, not for security. Source:
/// RFC 1321.
std::string md5(std::span<const std::uint8_t> bytes);

}  // namespace muster
