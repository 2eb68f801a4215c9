#include "muster/core/nn/initializer.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"

namespace muster {
namespace {

/// Standard deviation of the kinds that are normal.
double sigmaOf(const Init& init, std::int64_t fanIn, std::int64_t fanOut) {
  switch (init.kind) {
    case InitKind::Xavier:
      return std::sqrt(2.0 / static_cast<double>(fanIn + fanOut));
    case InitKind::He:
      return std::sqrt(2.0 / static_cast<double>(fanIn));
    default:
      return init.scale;
  }
}

/// The largest float32 below a bound, or 0: rounding must not reach the open end of an interval.
float largestBelow(double bound) {
  const auto rounded = static_cast<float>(bound);
  return rounded < bound ? rounded : std::nextafter(rounded, 0.0f);
}

}  // namespace

void Init::field(std::string_view name, Fields& fields) {
  std::string type(nameOf(kind));
  fields.object(name, type, [&](Fields& inside) {
    kind = valueNamed<InitKind>("initialiser", type);
    if (kind == InitKind::Normal) inside.field("sigma", scale, "standard deviation", "[0, )");
    if (kind == InitKind::Uniform)
      inside.field("bound", scale, "half the width: values are from -bound to bound", "[0, )");
    if (kind == InitKind::Constant) inside.field("value", scale, "the value of every weight");
  });
}

void Init::validate() const {
  if (kind == InitKind::Constant)
    return require(std::isfinite(static_cast<float>(scale)),
                   "initialiser constant: the value must be finite in float32, got {}", scale);
  require(std::isfinite(scale) && scale >= 0,
          "initialiser {}: the scale must be finite and not negative, got {}", nameOf(kind), scale);
}

void initialize(Tensor& values, const Init& init, std::int64_t fanIn, std::int64_t fanOut, std::uint64_t seed,
                std::string_view name) {
  init.validate();
  require(fanIn >= 1 && fanOut >= 1, "initialise {}: fan-in and fan-out must be at least 1, got {} and {}",
          name, fanIn, fanOut);
  const auto elements = values.span<float>();
  if (init.kind == InitKind::Zero || init.kind == InitKind::Constant) {
    std::ranges::fill(elements, init.kind == InitKind::Zero ? 0.0f : static_cast<float>(init.scale));
    return;
  }
  const RandomStream random(seed, "init " + std::string(name));
  if (init.kind == InitKind::Uniform) {
    const float last = largestBelow(init.scale);
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = std::min(last, static_cast<float>(init.scale * (2 * random.uniform(i) - 1)));
    return;
  }
  const double sigma = sigmaOf(init, fanIn, fanOut);
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(sigma * random.normal(i));
}

}  // namespace muster
