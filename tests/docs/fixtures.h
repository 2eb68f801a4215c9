// Declarations for the pages' C++ blocks; a page names those it needs ("tested: with model train").
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <iostream>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/ops/loss.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/working_directory.h"

#ifdef MUSTER_PAGES_ONNX
#include "muster/core/interop/onnx/onnx_layer.h"
#endif
#ifdef MUSTER_PAGES_TORCH
#include <torch/torch.h>
#endif

namespace muster_pages {
using namespace muster;

/// Runs a block in a new empty directory.
using Sandbox = test::WorkingDirectory;

/// Replaces the library's iterator by a few generated digits, so that a page's program needs no files.
class MnistDataSetIterator : public GeneratedDigitsIterator {
 public:
  MnistDataSetIterator(std::int64_t batch, bool train, std::uint64_t seed)
      : GeneratedDigitsIterator(batch, 512, seed, train) {}
};

struct with_train {
  GeneratedDigitsIterator train{64, 512, 1, true};
};
struct with_run {
  with_run();  // writes run.json
};
struct with_test {
  GeneratedDigitsIterator test{64, 256, 1, false};
};

inline MultiLayerConfiguration smallNetwork(std::uint64_t seed) {
  return {.seed = seed,
          .updater = Nesterovs{.learningRate = 0.05, .momentum = 0.9},
          .inputShape = {1, 28, 28},
          .layers = {Dense{.units = 16, .activation = Activation::ReLU}, Output{.classes = 10}}};
}
struct with_model {
  MultiLayerNetwork model{smallNetwork(1)};
  with_model() { model.init(); }
};
struct with_retrained {
  MultiLayerNetwork retrained{smallNetwork(2)};
  with_retrained() { retrained.init(); }
};
struct with_image {
  Tensor image = Tensor::zeros({1, 1, 28, 28});
};
/// 500 points of four numbers in three classes.
struct with_measurements {
  std::vector<float> measurements = std::vector<float>(2000);
  std::vector<std::int64_t> classes = std::vector<std::int64_t>(500);
  with_measurements() {
    for (std::size_t i = 0; i < 2000; ++i) measurements[i] = static_cast<float>(i % 7) * 0.1f;
    for (std::size_t i = 0; i < 500; ++i) classes[i] = static_cast<std::int64_t>(i % 3);
  }
};
/// flowers.csv, and pets with five pictures a class.
struct with_files {
  with_files();
};
/// customers.csv with the columns of the guide to tables, and two new customers in new.csv.
struct with_customers {
  with_customers();
};
struct with_batch {
  Batch batch;
  std::int64_t n = 3;
};
/// An input of 30 examples with 5 numbers.
struct with_input {
  Tensor input = Tensor::zeros({30, 5});
};

#ifdef MUSTER_PAGES_ONNX
/// A layer that the library does not have, with the members that an exporter reads.
struct with_Elu {
  struct Elu {
    static constexpr std::string_view kType = "elu";
    double alpha = 1;
    void fields(Fields& f) { f.field("alpha", alpha); }
  };
};
#endif

#ifdef MUSTER_PAGES_TORCH
struct with_Net {
  struct Net : torch::nn::Module {
    torch::nn::Linear hidden{nullptr}, digits{nullptr};
    Net() {
      hidden = register_module("hidden", torch::nn::Linear(784, 16));
      digits = register_module("digits", torch::nn::Linear(16, 10));
    }
    torch::Tensor forward(const torch::Tensor& x) { return digits(torch::relu(hidden(x.flatten(1)))); }
  };
};
#endif

}  // namespace muster_pages
