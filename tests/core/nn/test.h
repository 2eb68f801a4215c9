#pragma once

// What most tests of networks need.

#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/core/nn/checks.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
