#pragma once

#include "muster/parallel/parallel_wrapper.h"

namespace muster::test {

/// A builder for unpinned workers with this rule.
inline ParallelWrapper::Builder builderOf(Model& model, int workers, const AnyStrategy& strategy) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).pinThreads(false).strategy(strategy);
  return builder;
}

}  // namespace muster::test
