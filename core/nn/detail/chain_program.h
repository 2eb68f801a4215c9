#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/core/nn/module.h"

namespace muster::detail {

/// A layer of a chain with its place in the flat state: what a program is compiled from.
struct ChainLayer {
  std::string name;
  std::shared_ptr<const Module> module;
  Shape input = {}, output = {};        ///< without the batch
  std::vector<Tensor> parameters = {};  ///< views of the blocks
  std::vector<Tensor> gradients = {};
  std::vector<Tensor> statistics = {};
  std::span<const Segment> segments = {};  ///< of the parameters
};

/// A chain compiled for one batch size and one context. All memory is planned here: every activation has its
/// place while training, two alternate otherwise; two gradient buffers alternate. Running it allocates
/// nothing.
class ChainProgram {
 public:
  ChainProgram(std::span<const ChainLayer> layers, std::int64_t batch, bool training, Context& context);

  /// Runs the chain on features [N, ...]. @return the last layer's output, RowMajor [N, ...].
  Tensor& forward(const Tensor& features, const StepInfo& info);

  /// Where the derivative by the output is written before `backward`; the shape of `forward`'s result.
  Tensor& outputGradient() { return edges_.back().gradient; }
  /// Writes the parameters' gradients, and `inputGradient` only where it is asked for.
  void backward(const StepInfo& info, const GradientReady& onReady, bool withInputGradient = false);
  /// The derivative by the features, in the first layer's layout.
  const Tensor& inputGradient() const { return edges_.front().gradient; }

  /// Bytes of activations and gradients.
  std::size_t bytes() const { return activations_.bytes() + gradients_.bytes(); }

 private:
  struct Edge {  // what lies between two nodes
    Shape shape;
    Layout layout = Layout::RowMajor;
    Tensor value = {}, gradient = {};
    bool alias = false;  // the memory of the edge before it
  };
  struct Node {  // from edge i to edge i + 1
    std::unique_ptr<ModuleProgram> program;
    std::span<const Segment> segments = {};
    bool needsInputGradient = false;
    bool runsBackward = false;
  };

  void addNode(std::unique_ptr<ModuleProgram> program, const Shape& output,
               std::span<const Segment> segments);
  void planMemory(bool training);

  Context& context_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;  // one more than nodes
  Buffer activations_, gradients_;
  Tensor none_;  // stands for a gradient that nobody needs
};

}  // namespace muster::detail
