#pragma once

#include <fmt/format.h>

#include "muster/core/base/random.h"
#include "muster/core/interop/onnx/export_onnx.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/skip.h"
#include "tests/support/standard.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// Numbers in place of what init() leaves at 0 and 1, so that no bias or statistic goes unseen.
inline void randomise(Network& network) {
  const RandomStream random(17, "onnx");
  std::uint64_t index = 0;
  for (auto& block : network.blocks()) {
    if (block.kind != BlockKind::Parameters && block.kind != BlockKind::Statistics) continue;
    for (const auto& segment : block.segments->segments)
      for (float& value : block.segment(segment).span<float>())
        value += static_cast<float>(segment.name.ends_with("variance") ? random.uniform(index++)
                                                                       : 0.4 * random.uniform(index++) - 0.2);
  }
}

/// Makes a network for sequences of this length; other networks ignore the length.
using MakeNetwork = std::function<std::unique_ptr<Network>(std::int64_t steps)>;

inline MakeNetwork chain(const std::vector<Layer>& layers, const Shape& input) {
  return [=](std::int64_t steps) -> std::unique_ptr<Network> {
    Shape shape = input;
    if (input.rank() <= 2 && input[0] == 0) shape = input.dropFirst().prepend(steps);
    auto network = std::make_unique<MultiLayerNetwork>(
        MultiLayerConfiguration{.seed = 3, .inputShape = shape, .layers = layers});
    network->init();
    return network;
  };
}

inline MakeNetwork graph(const std::function<ComputationGraphConfiguration(std::int64_t)>& configuration) {
  return [=](std::int64_t steps) -> std::unique_ptr<Network> {
    auto network = std::make_unique<ComputationGraph>(configuration(steps));
    network->init();
    return network;
  };
}

/// Models, inputs and muster's outputs in a directory, for run_onnx.py.
class ComparedModels {
 public:
  /// Exports the network and runs it on batches of one and three examples; sequences of six and nine steps if
  /// `lengthsVary`.
  /// @param lengths  with padding at the ends, of one sequence wholly.
  /// @param classes  of index inputs.
  void add(const std::string& name, const MakeNetwork& make, bool lengthsVary = false, bool lengths = false,
           std::int64_t classes = 5) {
    const auto exported = make(6);
    randomise(*exported);
    for (const auto& node : detail::NetworkProbe::layOut(*exported).nodes)
      types_.emplace(node.module->type());
    exportOnnx(*exported, directory_ / (name + ".onnx"), {.lengths = lengths});
    int run = 0;
    for (const std::int64_t steps :
         lengthsVary ? std::vector<std::int64_t>{6, 9} : std::vector<std::int64_t>{6}) {
      const auto network = make(steps);
      network->copyStateFrom(*exported);
      for (const std::int64_t examples : {1, 3})
        writeSafetensors(directory_ / fmt::format("{}.{}.safetensors", name, run++),
                         ran(*network, steps, examples, lengths, classes));
    }
  }

  /// @return false if there is no onnxruntime and the case is skipped.
  bool agree() const {
    const char* python = std::getenv("MUSTER_ONNX_PYTHON");
    const int status = std::system(fmt::format("'{}' '{}' '{}'", python ? python : MUSTER_PYTHON,
                                               MUSTER_RUN_ONNX, directory_.path().string())
                                       .c_str());
    if (WEXITSTATUS(status) == 77) {
      skip("there is no onnxruntime: pip install onnxruntime, and MUSTER_ONNX_PYTHON names that python");
      return true;
    }
    return status == 0;
  }

  const TemporaryDirectory& directory() const { return directory_; }
  /// Types of all added layers and vertices.
  const std::set<std::string>& types() const { return types_; }

 private:
  static Safetensors ran(Network& network, std::int64_t steps, std::int64_t examples, bool lengths,
                         std::int64_t classes) {
    Safetensors file;
    Batch batch;
    const auto plan = detail::NetworkProbe::layOut(network);
    for (const auto& input : plan.inputs) {
      Tensor values = Batch::ensure(batch.features, input.name, input.shape.prepend(examples),
                                    input.indices ? DType::Int64 : DType::Float32);
      const RandomStream random(static_cast<std::uint64_t>(examples), input.name);
      std::uint64_t index = 0;
      if (input.indices)
        for (auto& value : values.span<std::int64_t>())
          value = static_cast<std::int64_t>(random.below(index++, static_cast<std::uint64_t>(classes)));
      else
        for (float& value : values.span<float>()) value = static_cast<float>(random.normal(index++));
      file.add("in:" + input.name, values);
    }
    if (lengths) {
      Tensor mask = Batch::ensure(batch.masks, "features", {examples, steps});
      Tensor real = Tensor::empty({examples}, DType::Int64);
      for (std::int64_t n = 0; n < examples; ++n) {
        const std::int64_t length = n == 0 ? steps - 2 : n == 1 ? 0 : steps;
        real.data<std::int64_t>()[n] = length;
        for (std::int64_t t = 0; t < steps; ++t) mask.data<float>()[n * steps + t] = t < length ? 1.0f : 0.0f;
      }
      file.add("in:lengths", real);
    }
    const auto outputs = network.outputs(batch);
    for (std::size_t i = 0; i < outputs.size(); ++i) file.add("out:" + plan.outputs[i].name, outputs[i]);
    return file;
  }

  TemporaryDirectory directory_;
  std::set<std::string> types_;
};

}  // namespace muster::test
