#pragma once

namespace muster::detail {

/// For tests: wrappers made from now on treat their workers on the CPU as if they lay on this many devices,
/// worker i on device i mod `count`, and merge as GPUs do, by copies from one to another. 0, as at the start:
/// they do not.
void pretendDevices(int count);

}  // namespace muster::detail
