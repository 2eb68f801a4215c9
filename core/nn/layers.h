#pragma once

// All layers, for programs that build networks.
#include "muster/core/nn/layers/batch_norm.h"        // IWYU pragma: export
#include "muster/core/nn/layers/conv1d.h"            // IWYU pragma: export
#include "muster/core/nn/layers/conv2d.h"            // IWYU pragma: export
#include "muster/core/nn/layers/conv_transpose2d.h"  // IWYU pragma: export
#include "muster/core/nn/layers/dense.h"             // IWYU pragma: export
#include "muster/core/nn/layers/elementwise.h"       // IWYU pragma: export
#include "muster/core/nn/layers/embedding.h"         // IWYU pragma: export
#include "muster/core/nn/layers/layer_norm.h"        // IWYU pragma: export
#include "muster/core/nn/layers/pool2d.h"            // IWYU pragma: export
#include "muster/core/nn/layers/recurrent.h"         // IWYU pragma: export
#include "muster/core/nn/layers/resize2d.h"          // IWYU pragma: export
#include "muster/core/nn/layers/self_attention.h"    // IWYU pragma: export
#include "muster/core/nn/layers/sequence.h"          // IWYU pragma: export
#include "muster/core/nn/layers/vertices.h"
