#pragma once

#include <cstdint>

namespace muster::detail {

/// CPU buffer bytes that this thread has allocated minus those that it has freed. The difference of two calls
/// is the growth between them.
std::int64_t cpuBytesOfThread();

}  // namespace muster::detail
