#pragma once

#include <exception>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {

/// Calls what calls the user's data iterator. An Error is passed on, since it says what is wrong; any other
/// exception is the iterator's and becomes a TrainingError.
/// @param doing  a verb for the message, as in "tell its size".
template <typename Call>
decltype(auto) callIterator(std::string_view doing, Call call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("the data iterator failed to {}: {}", doing, describe(cause)), -1, cause);
  }
}

}  // namespace muster
