#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/data/batch.h"

namespace muster {

/// A value that is not finite.
struct NonFiniteValue {
  std::string value;         ///< nan, inf or -inf
  std::int64_t example = 0;  ///< its index
  std::string place;         ///< in the example: "column 2" or "position [1, 0]"
};

/// The first value of float32 [N, F, ...] in the host's memory that is not finite.
/// @param weights  [N] or [N, T]: what has weight 0 is not looked at; undefined: all is.
std::optional<NonFiniteValue> firstNonFinite(const Tensor& values, const Tensor& weights);

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
