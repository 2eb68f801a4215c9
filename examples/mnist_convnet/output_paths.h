#pragma once

#include "examples/mnist_convnet/options.h"

namespace example {

/// Finds out before the training, rather than after it, that a file cannot be written where it was asked for.
/// @throws muster::FileError naming the path and the cause.
void checkOutputPaths(const Options& options);

}  // namespace example
