#pragma once

#include <doctest/doctest.h>

#include "tests/parallel/every_rule.h"

namespace muster::test {

/// Calls `check(rule, workers)` with at least each given number of workers, for one rule of each kind, and
/// for every rule in `./run soak`.
template <typename Check>
void forEveryRule(std::initializer_list<int> workers, Check check) {
  for (const NamedRule& rule : someRules())
    for (const int least : workers) {
      const int w = rule.workers(least);
      CAPTURE(rule.name);
      CAPTURE(w);
      check(rule, w);
    }
}

}  // namespace muster::test
