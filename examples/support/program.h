#pragma once

#include <functional>
#include <string_view>

namespace example {

/// Runs a program's `main` and returns its exit status: that of `body`, or, with a sentence on standard
/// error, 2 for an invalid option (muster::InvalidArgument) and 1 for any other failure. Output that cannot
/// be written does not stop `body`, but counts as a failure at the end.
int runProgram(std::string_view name, const std::function<int()>& body);

}  // namespace example
