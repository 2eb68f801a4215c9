#pragma once

#include <cstdint>
#include <string>

#include "muster/core/nn/model.h"

namespace muster {

struct GradientCheckOptions {
  double epsilon = 2e-3;         ///< half the distance of the two points of a central difference
  double relative = 1e-2;        ///< tolerated error as a share of the larger of the two derivatives
  double absolute = 5e-4;        ///< tolerated error beside it: the rounding of a float32 loss over epsilon
  std::int64_t perSegment = 24;  ///< elements tried in each segment, drawn from `seed`; all of a smaller one
  std::uint64_t seed = 1;
};

struct GradientCheckResult {
  bool passed = true;
  std::int64_t checked = 0;  ///< elements tried
  std::int64_t kinks =
      0;  ///< of these, left out since the loss has a kink within epsilon (see checkGradients)
  /// The worst element: where it is, and its error as a multiple of what is tolerated.
  std::string segment;
  std::int64_t index = 0;
  double analytic = 0, numeric = 0, excess = 0;

  /// As in `conv1.weight[17]: gradient 0.125, central difference 0.131 (2.3 times the tolerance)`.
  std::string toString() const;
};

/// Compares a model's gradient with central differences of its loss, element by element. For layers and
/// models of one's own, with blocks of float32 or float64 (which bear tighter tolerances). The parameters
/// come back unchanged; the model's updater is not used. Frozen parameters are left out: nothing reads their
/// gradients, and a network does not compute those in front of everything that learns.
///
/// Where the two differ, the slopes on both sides are taken once more with a quarter of epsilon. If these
/// disagree with each other or with the wider difference, the loss has a kink there (ReLU, a maximum), and
/// the element is left out. A check of which a quarter is left out has failed.
/// @throws InvalidArgument for a model without parameters, or with frozen ones only.
GradientCheckResult checkGradients(Model& model, const Batch& batch,
                                   const GradientCheckOptions& options = {});

}  // namespace muster
