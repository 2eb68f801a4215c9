#pragma once

// libtorch's headers come before doctest's, whose CHECK is not glog's.
#include <torch/nn.h>
#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_LE
#undef CHECK_GT
#undef CHECK_GE

#include <memory>
#include <utility>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/interop/torch/torch_model.h"
#include "tests/support/list_iterator.h"

namespace muster::test {

/// Images [3, 6, 6] in 4 classes.
struct ConvNet : torch::nn::Module {
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 8, 3).padding(1)};
  torch::nn::BatchNorm2d norm{8};
  torch::nn::Linear dense{8 * 9, 4};
  ConvNet() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("dense", dense);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return dense(torch::max_pool2d(torch::relu(norm(conv(x))), 2).flatten(1));
  }
};

inline std::shared_ptr<ConvNet> makeConvNet() {
  return std::make_shared<ConvNet>();
}

/// The mean cross-entropy of any module's logits.
inline const auto crossEntropy = [](auto& net, const TorchBatch& batch) {
  return torch::nn::functional::cross_entropy(net.forward(batch.features()), batch.labels());
};

inline TrainingOptions momentum() {
  return {.updater = Nesterovs{.learningRate = 0.05, .momentum = 0.9}, .l2 = 1e-3};
}

/// The same parameters each time.
inline std::unique_ptr<TorchModel> convModel(const TrainingOptions& options = momentum()) {
  torch::manual_seed(5);
  return std::make_unique<TorchModel>(makeConvNet, crossEntropy, options);
}

inline Batch imageBatch(std::uint64_t seed, std::int64_t examples = 6) {
  Batch batch;
  Tensor images = Batch::ensure(batch.features, "images", {examples, 3, 6, 6});
  Tensor labels = Batch::ensure(batch.labels, "classes", {examples}, DType::Int64);
  const RandomStream random(seed, "torch");
  std::uint64_t index = 0;
  for (float& value : images.span<float>()) value = static_cast<float>(random.normal(index++));
  for (auto& label : labels.span<std::int64_t>()) label = static_cast<std::int64_t>(random.below(index++, 4));
  return batch;
}

inline ListIterator imageBatches(int count) {
  std::vector<Batch> batches;
  for (int b = 0; b < count; ++b) batches.push_back(imageBatch(static_cast<std::uint64_t>(b)));
  return ListIterator(std::move(batches));
}

}  // namespace muster::test
