#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/nn/layer.h"

namespace muster::detail {

/// An input of a network.
struct NetworkInput {
  std::string name;
  Shape shape = {};      ///< of one example; in a plan with kExampleSize where the configuration has 0
  bool indices = false;  ///< int64; else float32
  Shape stated = {};     ///< in a plan: as the configuration has it; 0 is any size

  bool open() const { return shape != stated; }
};

/// The size with which a network is laid out where its input's shape leaves it open: the length of sequences
/// [T, F] or [T], height and width of images.
inline constexpr std::int64_t kExampleSize = 64;
using OpenSizes = std::array<std::int64_t, 2>;

/// What a network is compiled for.
struct BatchSize {
  std::int64_t examples = 0;
  OpenSizes open = {};  ///< the same for all inputs that are open: length and 0, or height and width; 0: none
  bool operator==(const BatchSize&) const = default;
};

/// A module of a network, its inputs, and its part of the flat state: the source of a compiled program.
///
/// Values are numbered: first the network's inputs, then the nodes' outputs in the order of the nodes.
struct NetworkNode {
  std::string name;
  std::shared_ptr<const Module> module;
  LayerSettings settings = {};
  std::vector<std::size_t> inputs = {};  ///< values with smaller numbers than the node's own
  std::vector<Shape> inputShapes = {};   ///< without the batch
  Shape output = {};
  std::vector<Tensor> parameters = {};  ///< views of the blocks
  std::vector<Tensor> gradients = {};
  std::vector<Tensor> statistics = {};
  std::span<const Segment> segments = {};  ///< of the parameters
};

/// A node's description for tables.
struct NetworkOutline {
  std::string name, type;
  std::string inputs;  ///< its inputs, unless it only reads the node before
};

struct NetworkOutput {
  std::string name;
  std::size_t value = 0;
  std::optional<LossHead> head = {};
  double weight = 1;  ///< of its loss in the network's loss, with the head's own
};

/// A network laid out: each node comes after its inputs.
struct NetworkPlan {
  std::vector<NetworkInput> inputs;
  std::vector<NetworkNode> nodes;
  std::vector<NetworkOutput> outputs;

  bool empty() const { return nodes.empty(); }
  const Shape& shapeOf(std::size_t value) const {
    return value < inputs.size() ? inputs[value].shape : nodes[value - inputs.size()].output;
  }
  const std::string& nameOf(std::size_t value) const {
    return value < inputs.size() ? inputs[value].name : nodes[value - inputs.size()].name;
  }
};

/// The shapes of all values, [value], for inputs of other sizes.
/// @throws InvalidArgument naming the node that cannot read them or would have other parameters.
std::vector<Shape> shapesFor(const NetworkPlan& plan, std::vector<Shape> inputs);
/// The sizes that an input leaves open, of an example.
OpenSizes openSizesOf(const NetworkInput& input, const Shape& example);
/// The plan for these sizes.
NetworkPlan withSizes(const NetworkPlan& plan, const OpenSizes& sizes);

/// Checks the name of a layer, vertex or input, which files and tables use. @param what  has the name: "layer
/// 3".
/// @throws InvalidArgument for a name that is not UTF-8 or contains a control character, such as a newline.
void requireUsableName(std::string_view what, std::string_view name);

/// Lays out nodes one after another, with checks that name the node.
class NetworkLayout {
 public:
  explicit NetworkLayout(std::vector<NetworkInput> inputs);

  /// Adds a node that reads these values, with a Flatten before it if needed. @return its value.
  /// @throws InvalidArgument naming the node if its name or one of its tensors' names is used already, or if
  ///         the shapes do not fit.
  std::size_t add(std::string name, const Layer& layer, std::vector<std::size_t> inputs);
  void addOutput(std::string name, std::size_t value, double weight = 1);
  /// @throws InvalidArgument if a layer's parameters depend on a size that is left open.
  NetworkPlan take();

 private:
  std::size_t append(NetworkNode node);
  std::string readingOf(const NetworkNode& node) const;
  std::string openRemark() const;
  void requireIndices(const NetworkNode& node);
  void requireScaledInput(const NetworkNode& node);
  void requireTensors(const NetworkNode& node);

  NetworkPlan plan_;
  std::set<std::string, std::less<>> names_;    // of all nodes
  std::set<std::string, std::less<>> tensors_;  // names of all parameters and statistics
  std::vector<std::string> readAsNumbers_;      // [input] the first node that reads it as numbers
};

}  // namespace muster::detail
