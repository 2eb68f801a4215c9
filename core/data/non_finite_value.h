#pragma once

#include <optional>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/data/batch.h"

namespace muster {

/// Says where a batch's features or labels hold a value that is not finite; nothing if they hold none. As in
/// "the features hold nan: example 3 of the batch (example 35 of the epoch), column 2, counted from 0".
/// Labels of weight 0 are not looked at, and padding of features last.
std::optional<std::string> nonFiniteValue(const Batch& batch);

/// Runs `call` for a batch. A NonFiniteScore that it throws names a value of the batch that is not finite, if
/// there is one.
template <typename Call>
auto namingValues(const Batch& batch, Call call) {
  try {
    return call();
  } catch (const NonFiniteScore&) {
    if (const auto where = nonFiniteValue(batch)) throw NonFiniteScore(*where);
    throw;
  }
}

}  // namespace muster
