#pragma once

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/compile/network_plan.h"
#include "muster/core/nn/model.h"

namespace muster::detail {

/// The numbers of a network's Normalise layers: fitted to data, and required before the network computes.
class Normalisation {
 public:
  /// @param plan  must outlive it; the layers' numbers are among its nodes' statistics.
  Normalisation(const NetworkPlan& plan, Context& context) : plan_(plan), context_(context) {}

  /// Whether every layer was fitted; true without any. Waits for the device.
  bool fitted() const;
  /// Fits all layers to the features of epoch 0. @param network  is prepared with the first batch.
  /// @throws InvalidArgument as Network::fitNormalisation.
  void fit(Model& network, DataSetIterator& data);
  /// @throws InvalidArgument naming a layer that was not fitted. Waits for a GPU only until all were seen
  ///         fitted.
  void requireFitted();
  /// The numbers may have changed: the next `requireFitted` reads them again.
  void forget() { known_ = false; }

 private:
  const NetworkPlan& plan_;
  Context& context_;
  bool known_ = false;  // on a GPU: all layers were seen fitted
};

}  // namespace muster::detail
