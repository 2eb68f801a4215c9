#pragma once

#include <string>
#include <utility>

namespace muster::test {

/// The text of the `Expected` that `call` throws; "" if it throws nothing. Other exceptions pass through.
template <typename Expected, typename Call>
std::string thrown(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

}  // namespace muster::test
