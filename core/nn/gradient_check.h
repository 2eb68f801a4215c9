#pragma once

#include <cstdint>
#include <string>

#include "muster/core/nn/model.h"

namespace muster {

/// Options of `checkGradients`.
struct GradientCheckOptions {
  double epsilon = 2e-3;   ///< half the distance of a central difference's two points
  double relative = 1e-2;  ///< tolerated error relative to the larger derivative
  double absolute = 5e-4;  ///< tolerated absolute error: rounding of a float32 loss over epsilon
  std::int64_t perSegment =
      24;  ///< elements tried in each segment, drawn from `seed`; all elements of a smaller one
  std::uint64_t seed = 1;
};

/// What `checkGradients` has found.
struct GradientCheckResult {
  bool passed = true;
  std::int64_t checked = 0;  ///< elements tried
  std::int64_t kinks =
      0;  ///< of these, left out since the loss has a kink within epsilon (see checkGradients)
  /// The worst element, and its error as a multiple of the tolerance.
  std::string segment;
  std::int64_t index = 0;
  double analytic = 0, numeric = 0, excess = 0;

  /// For example `conv1.weight[17]: gradient 0.125, central difference 0.131 (2.3 times the tolerance)`.
  std::string toString() const;
};

/// Compares a model's gradient with central differences of its loss, element by element. For user-defined
/// layers and models, with float32 or float64 blocks (float64 allows tighter tolerances). The parameters are
/// restored; the model's updater is not used. Frozen parameters are left out, because their gradients may not
/// be computed.
///
/// If the two differ, the slopes on both sides are computed again with a quarter of epsilon. If these differ
/// from each other or from the wider difference, the loss has a kink there (ReLU, a maximum), and the element
/// is left out. A check that leaves out a quarter of the elements has failed.
/// @throws InvalidArgument for a model without parameters, or with frozen ones only.
GradientCheckResult checkGradients(Model& model, const Batch& batch,
                                   const GradientCheckOptions& options = {});

}  // namespace muster
