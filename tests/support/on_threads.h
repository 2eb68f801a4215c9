#pragma once

#include "tests/support/thrown.h"

namespace muster::test {

/// Calls `call(i)` for each i below `count`, each on a thread of its own. @return [i] what it throws; "":
/// nothing.
template <typename Call>
std::vector<std::string> onThreads(int count, const Call& call) {
  std::vector<std::string> problems(static_cast<std::size_t>(count));
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(
        [&, i] { problems[static_cast<std::size_t>(i)] = thrown<std::exception>([&] { call(i); }); });
  threads.clear();
  return problems;
}

}  // namespace muster::test
