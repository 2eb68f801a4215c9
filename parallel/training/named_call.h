#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

// Calls of code that is not the training's own: its exceptions are given a name.

namespace muster {

/// Calls a function. Any exception becomes a TrainingError.
/// @param where  returns the beginning of its text, as in "the training could not begin".
template <typename Where, typename Call>
decltype(auto) callForTraining(Where where, Call call) {
  try {
    return call();
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("{}: {}", where(), describe(cause)), -1, cause);
  }
}

/// Calls a function of `whose`, as in "the strategy". An Error is passed on, since it says what is wrong, and
/// so is std::bad_alloc, which the callee did not cause; any other exception becomes a TrainingError.
/// @param doing  a verb for the message, as in "begin".
template <typename Call>
decltype(auto) callNamed(std::string_view whose, std::string_view doing, Call call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    const auto where = [&] { return fmt::format("{} failed to {}", whose, doing); };
    return callForTraining(where, [&]() -> decltype(call()) { throw; });
  }
}

/// Calls a function of the strategy outside a merge.
template <typename Call>
decltype(auto) callStrategy(std::string_view doing, Call call) {
  return callNamed("the strategy", doing, std::move(call));
}

/// Calls what calls the user's data iterator outside the reader's thread.
template <typename Call>
decltype(auto) callIterator(std::string_view doing, Call call) {
  return callNamed("the data iterator", doing, std::move(call));
}

}  // namespace muster
