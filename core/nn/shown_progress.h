#pragma once

#include "muster/core/nn/listener.h"

namespace muster::detail {

/// The listeners of a `fit()`, with a ProgressListener before them if progress is shown by itself: see
/// showProgress. Source: core/listeners.
Listeners withProgress(Listeners listeners);

}  // namespace muster::detail
