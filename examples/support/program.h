#pragma once

#include <functional>
#include <string_view>

namespace example {

/// Runs a program's `main` and returns its exit status: what `body` returns, or, with one sentence on
/// standard error, 2 for an option that cannot be (muster::InvalidArgument) and 1 for any other failure.
/// Output that cannot be written does not stop `body`, but is such a failure at the end.
int runProgram(std::string_view name, const std::function<int()>& body);

}  // namespace example
