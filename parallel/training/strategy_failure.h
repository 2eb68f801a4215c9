#pragma once

#include <exception>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {

/// Calls a function of the strategy outside a merge. An Error is passed on, since it says what is wrong; any
/// other exception becomes a TrainingError.
/// @param doing  a verb for the message, as in "begin".
template <typename Call>
decltype(auto) callStrategy(std::string_view doing, Call call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("the strategy failed to {}: {}", doing, describe(cause)), -1, cause);
  }
}

}  // namespace muster
