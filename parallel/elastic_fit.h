#pragma once

#include <cstdint>
#include <optional>

#include "muster/parallel/wrapper_impl.h"

namespace muster {

/// One `fit()` over elastic nodes: a sequence of generations, each with the nodes that are members then. Used
/// by the thread that called `fit()`.
class ParallelWrapper::Impl::ElasticFit {
 public:
  ElasticFit(Impl& wrapper, DataSetIterator& data, std::int64_t epochs);

  /// @throws TrainingError if the training fails, or too few nodes are left.
  void run();

 private:
  bool unfinished() const { return !wrapper_.stop_ && wrapper_.model_.epoch() < lastEpoch_; }
  bool trainGeneration();
  void callEnd();

  Impl& wrapper_;
  ElasticNodes& nodes_;
  DataSetIterator& data_;
  const std::int64_t lastEpoch_;
  bool inTraining_ = false;        // whether this node has trained in a generation
  std::optional<FitParts> parts_;  // set once the nodes have begun
};

}  // namespace muster
