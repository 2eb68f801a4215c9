#pragma once

// All layers, for programs that build networks.
#include "muster/core/nn/layers/conv2d.h"
