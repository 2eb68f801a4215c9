#include "muster/core/nn/scale_remark.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/layers/dense.h"

namespace muster {
namespace {

constexpr double kApart = 100;  // times, of two magnitudes that are hardly learned together
constexpr double kLarge = 10;   // a smaller magnitude does no harm

bool readsUnscaled(const Network& network) {
  const auto plan = detail::NetworkProbe::layOut(network);
  return std::ranges::any_of(plan.nodes, [](const auto& node) {
    return !node.inputs.empty() && node.inputs.front() == 0 &&
           (node.module->type() == Dense::kType || node.module->type() == Output::kType);
  });
}

/// The root of the mean square of each column. @param features  float32 [N, F].
std::vector<double> magnitudes(const Tensor& features) {
  const std::int64_t rows = features.shape()[0], columns = features.shape()[1];
  std::vector<double> squares(static_cast<std::size_t>(columns), 0.0);
  const float* from = features.data<float>();
  for (std::int64_t i = 0; i < rows; ++i)
    for (auto& square : squares) square += std::pow(static_cast<double>(*from++), 2);
  for (auto& square : squares) square = std::sqrt(square / static_cast<double>(rows));
  return squares;
}

std::string nameOf(const Network& network, std::int64_t column) {
  const auto names = network.inputDescription().featureNames();
  return column < std::ssize(names) ? names[static_cast<std::size_t>(column)] : fmt::format("{}", column);
}

}  // namespace

std::string scaleRemark(const Model& model, const Batch& first) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  if (network == nullptr || first.namesRows() || first.features.size() != 1) return {};
  const Tensor& features = first.features.front().value;
  if (features.dtype() != DType::Float32 || features.shape().rank() != 2 || features.shape()[0] < 2)
    return {};
  if (!readsUnscaled(*network)) return {};
  const auto all = magnitudes(features);
  std::int64_t small = -1, large = 0;
  for (std::int64_t c = 0; c < std::ssize(all); ++c) {
    const double here = all[static_cast<std::size_t>(c)];
    if (here > all[static_cast<std::size_t>(large)]) large = c;
    if (here > 0 && (small < 0 || here < all[static_cast<std::size_t>(small)])) small = c;
  }
  if (small < 0) return {};
  const double least = all[static_cast<std::size_t>(small)], most = all[static_cast<std::size_t>(large)];
  if (!(most > kLarge && most > kApart * least)) return {};
  return fmt::format(
      "nothing scales the features, whose magnitudes differ: column {} is about {:.2g}, column {} about "
      "{:.2g}; "
      "with Normalise as the first layer the network learns from all of them",
      nameOf(*network, large), most, nameOf(*network, small), least);
}

}  // namespace muster
