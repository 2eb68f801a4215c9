#pragma once

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "tests/support/standard.h"

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

/// Checks that the expression throws InvalidArgument with this text.
#define CHECK_REFUSED(expression, text) \
  CHECK(::muster::test::thrown<::muster::InvalidArgument>([&] { static_cast<void>(expression); }) == (text))
