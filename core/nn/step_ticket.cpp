#include "muster/core/nn/step_ticket.h"

#include <cmath>

#include "muster/core/base/error.h"

namespace muster {

void requireFinite(const StepScore& score) {
  if (std::isfinite(score.score)) return;
  const double shown =
      std::isnan(score.score) ? std::abs(score.score) : score.score;  // NaN is printed without a sign
  throw NonFiniteScore(
      fmt::format("the score became {}; a lower learning rate or clipping may help, or the data hold a value "
                  "that is not finite",
                  shown));
}

}  // namespace muster
