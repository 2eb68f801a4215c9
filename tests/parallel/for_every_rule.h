#pragma once

#include <doctest/doctest.h>

#include <initializer_list>

#include "tests/parallel/every_rule.h"

namespace muster::test {

/// Calls `check(rule, workers)` for every rule with at least each given number of workers.
template <typename Check>
void forEveryRule(std::initializer_list<int> workers, Check check) {
  for (const NamedRule& rule : everyRule())
    for (const int least : workers) {
      const int w = rule.workers(least);
      CAPTURE(rule.name);
      CAPTURE(w);
      check(rule, w);
    }
}

}  // namespace muster::test
