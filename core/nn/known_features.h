#pragma once

#include "muster/core/data/batch.h"

namespace muster {

/// For models that know the features that `output` reads: ParallelInference compiles them before the first
/// call. A model of your own may derive from it, too.
class KnownFeatures {
 public:
  virtual ~KnownFeatures() = default;
  /// Features of one example, all zeros, on the CPU; no features while their shapes are unknown.
  virtual Batch exampleFeatures() const = 0;
};

}  // namespace muster
