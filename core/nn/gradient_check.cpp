#include "muster/core/nn/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"

namespace muster {

namespace {

/// Slopes of the loss on both sides of a point, computed with the rounded steps.
struct Slopes {
  double left, right;
  double mean() const { return (left + right) / 2; }
  /// Whether the loss has a kink here: the two slopes differ, or their mean differs from a wider step's mean.
  bool kink(double wider, double tolerance) const {
    return std::abs(left - right) > tolerance || std::abs(mean() - wider) > tolerance;
  }
};

/// T is the type of the blocks.
template <typename T>
GradientCheckResult checkAs(Model& model, const Batch& batch, const GradientCheckOptions& options) {
  const auto& parameters = model.block(BlockKind::Parameters);
  const auto& gradients = model.block(BlockKind::Gradients);
  model.gradient(batch);
  model.context().synchronize();
  // Each evaluation of the loss below overwrites the block.
  const Tensor analytic = copyTo(gradients.values, Device::cpu());
  const Tensor values = copyTo(parameters.values, Device::cpu());
  GradientCheckResult result;
  result.excess = -1;
  for (const auto& segment : parameters.segments->segments) {
    if (segment.frozen) continue;  // its gradient is not read and may be missing
    const std::int64_t size = segment.shape.elements();
    const RandomStream random(options.seed, "gradient check " + segment.name);
    const bool all = size <= options.perSegment;
    for (std::int64_t i = 0; i < (all ? size : options.perSegment); ++i) {
      const auto index = all ? i
                             : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(i),
                                                                      static_cast<std::uint64_t>(size)));
      T& value = values.data<T>()[segment.offset + index];
      const T before = value;
      const Tensor ours = values.slice(segment.offset + index, {1});
      Tensor theirs = parameters.values.slice(segment.offset + index, {1});
      const auto slopes = [&](double epsilon) {
        const auto lossAt = [&](double offset) {
          value = static_cast<T>(before + offset);
          model.context().synchronize();  // work after the loss still reads the element
          copy(ours, theirs);
          return model.gradient(batch).wait().score;
        };
        const double above = lossAt(epsilon), upper = value;
        const double below = lossAt(-epsilon), lower = value;
        const double here = lossAt(0);
        return Slopes{(here - below) / (before - lower), (above - here) / (upper - before)};
      };
      const double numeric = slopes(options.epsilon).mean();
      const double exact = analytic.data<T>()[segment.offset + index];
      const double tolerated =
          options.absolute + options.relative * std::max(std::abs(numeric), std::abs(exact));
      const double excess = std::abs(numeric - exact) / tolerated;
      ++result.checked;
      if (excess > 1 && slopes(options.epsilon / 4).kink(numeric, tolerated / 2)) {
        ++result.kinks;
      } else if (!(excess <= result.excess)) {  // also true for NaN
        result.segment = segment.name;
        result.index = index;
        result.analytic = exact;
        result.numeric = numeric;
        result.excess = excess;
      }
    }
  }
  require(result.checked > 0, "gradient check: the model has no parameters that are not frozen");
  result.passed = result.excess <= 1 && 4 * result.kinks < result.checked;
  model.gradient(batch);
  return result;
}

}  // namespace

std::string GradientCheckResult::toString() const {
  return fmt::format(
      "{}[{}]: gradient {:.4g}, central difference {:.4g} ({:.2f} times the tolerance; {} elements tried)",
      segment, index, analytic, numeric, excess, checked);
}

GradientCheckResult checkGradients(Model& model, const Batch& batch, const GradientCheckOptions& options) {
  const bool wide = model.block(BlockKind::Parameters).values.dtype() == DType::Float64;
  return wide ? checkAs<double>(model, batch, options) : checkAs<float>(model, batch, options);
}

}  // namespace muster
