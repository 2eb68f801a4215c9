#pragma once

#include <typeinfo>

#include "muster/core/base/error.h"

namespace muster {

/// Returns the result of `call`. A NonFiniteScore or an InvalidArgument that it throws names the batch; types
/// derived from InvalidArgument are passed on, as they say themselves what is wrong.
/// @param where  returns the beginning of its text, as in "batch 4 of epoch 1".
template <typename Where, typename Call>
auto namingBatch(Where where, Call call) {
  try {
    return call();
  } catch (const NonFiniteScore& error) {
    throw NonFiniteScore(fmt::format("{}: {}", where(), error.what()));
  } catch (const InvalidArgument& error) {
    if (typeid(error) != typeid(InvalidArgument)) throw;
    throw InvalidArgument(fmt::format("{}: {}", where(), error.what()));
  }
}

}  // namespace muster
