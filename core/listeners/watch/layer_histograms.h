#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/core/listeners/watch/histogram.h"

namespace muster {

/// The parameters of one segment, as `conv1.weight`, and what a round has changed in them.
struct LayerHistogram {
  std::string name;
  Histogram parameters;
  Histogram update;  ///< parameters after the round less those before it
  /// Norm of the update relative to that of the parameters; 0 if these are all 0.
  double ratio() const;
};

/// Looks at the merged model before a round and after it. Allocates at the first call only, and changes
/// nothing in the model.
class LayerHistograms {
 public:
  /// Copies the parameters. Of a model without parameters it copies nothing.
  void before(Model& model);
  /// Whether `before` has copied, and `after` has not been called since.
  bool begun() const { return begun_; }
  /// @return one for each segment, in order; empty unless `begun()`. Valid until the next call.
  std::span<const LayerHistogram> after(Model& model);

 private:
  Tensor before_;  // on the CPU
  bool begun_ = false;
  std::vector<LayerHistogram> layers_;
};

}  // namespace muster
