#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>

#include <fmt/ranges.h>

#include <span>
#include <sstream>

#include "muster/core/base/error.h"
#include "muster/core/interop/torch/detail/module_tensors.h"

namespace muster::detail {

bool isAt(const at::Tensor& tensor, const at::Tensor& place) {
  return tensor.defined() && tensor.data_ptr() == place.data_ptr() &&
         tensor.scalar_type() == place.scalar_type() && tensor.sizes() == place.sizes();
}

std::string described(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << ' ' << tensor.sizes() << " on " << tensor.device();
  return text.str();
}

void requireUsable(const std::string& name, const at::Tensor& tensor, std::string_view what) {
  require(tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat,
          "torch: the {} {} is {}; a TorchModel takes modules in float32 on the CPU", what, name,
          described(tensor));
  require(tensor.is_non_overlapping_and_dense(),
          "torch: the elements of the {} {} share memory or have gaps between them", what, name);
}

Shape shapeOf(const at::Tensor& tensor) {
  return Shape(std::span(tensor.sizes().data(), tensor.sizes().size()));
}

TorchBuffers sortedBuffers(torch::nn::Module& module) {
  constexpr std::string_view kMean = "running_mean", kVariance = "running_var";
  TorchBuffers sorted;
  const auto buffers = module.named_buffers();
  for (const auto& buffer : buffers) {
    const std::string& name = buffer.key();
    if (!buffer.value().defined()) continue;
    const auto partnerOf = [&](std::string_view end, std::string_view other) {
      return name.ends_with(end) ? buffers.find(name.substr(0, name.size() - end.size()) + std::string(other))
                                 : nullptr;
    };
    const at::Tensor* const variance = partnerOf(kMean, kVariance);
    if (!buffer.value().is_floating_point()) {
      sorted.kept.add(name, buffer.value());
    } else if (variance != nullptr && variance->defined() && variance->sizes() == buffer.value().sizes()) {
      sorted.means.add(name, buffer.value());
      sorted.variances.add(name.substr(0, name.size() - kMean.size()) + std::string(kVariance), *variance);
    } else if (const at::Tensor* const mean = partnerOf(kVariance, kMean);
               mean == nullptr || !mean->defined() || mean->sizes() != buffer.value().sizes()) {
      // Numbers that are not finite are constants, as in a mask.
      const bool finite = at::isfinite(buffer.value()).all().item<bool>();
      (finite ? sorted.others : sorted.kept).add(name, buffer.value());
    }
  }
  return sorted;
}

std::vector<std::string> randomModules(torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& part : module.named_modules()) {
    const torch::nn::Module* const value = part.value().get();
    const auto* recurrent = dynamic_cast<const torch::nn::detail::RNNImplBase<torch::nn::LSTMImpl>*>(value);
    const auto* gated = dynamic_cast<const torch::nn::detail::RNNImplBase<torch::nn::GRUImpl>*>(value);
    const auto* plain = dynamic_cast<const torch::nn::detail::RNNImplBase<torch::nn::RNNImpl>*>(value);
    const bool between = (recurrent && recurrent->options_base.dropout() > 0) ||
                         (gated && gated->options_base.dropout() > 0) ||
                         (plain && plain->options_base.dropout() > 0);
    if (between || value->name().find("Dropout") != std::string::npos ||
        value->name().find("RReLU") != std::string::npos)
      names.push_back(part.key().empty() ? "the module" : part.key());
  }
  return names;
}

}  // namespace muster::detail
