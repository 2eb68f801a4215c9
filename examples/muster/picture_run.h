#pragma once

#include "examples/muster/run_file.h"

namespace program {

/// A run to begin with on a folder of pictures: all brought to one size, a small convolutional network, one
/// example in five held out of the training, which ends when they are no longer recognised better.
/// @throws InvalidArgument for too few pictures; FileError.
RunFile pictureRun(RunData data);

}  // namespace program
