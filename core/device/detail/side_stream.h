#pragma once

namespace muster::detail {

/// Whether the calling thread has a `SideStreamScope` open, of any context.
bool insideSideStreamScope();

}  // namespace muster::detail
