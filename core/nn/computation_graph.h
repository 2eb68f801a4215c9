#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/network.h"

namespace muster {
/// An input of a graph.
struct GraphInput {
  std::string name;
  Shape shape = {};  ///< of one example; empty: taken from the first batch; 0: any length, height, width
};

/// A layer or vertex of a graph, and the names of its inputs: inputs of the graph or other vertices.
struct GraphVertex {
  std::string name;
  Layer layer;
  std::vector<std::string> inputs;
};
/// An output of a graph, and the weight of its loss.
struct GraphOutput {
  std::string name;   ///< of a vertex
  double weight = 1;  ///< of its loss in the network's loss; finite, at least 0
};

/// A graph of layers and its training options. Vertices may be in any order. Names are UTF-8 without control
/// characters.
///
/// ```cpp
/// ComputationGraphConfiguration graph{.seed = 1, .inputs = {{.name = "image", .shape = {1, 28, 28}}}};
/// const Conv2d narrow{.outChannels = 8, .kernel = {3, 3}, .padding = {1, 1}};
/// const Conv2d wide{.outChannels = 8, .kernel = {5, 5}, .padding = {2, 2}};
/// const auto a = graph.add("a", narrow, {"image"});
/// const auto b = graph.add("b", wide, {"image"});
/// const auto sum = graph.add("sum", Combine{.combination = Combination::Add}, {a, b});
/// graph.addOutput(graph.add("digit", Output{.classes = 10}, {sum}));
/// ```
struct ComputationGraphConfiguration {
  std::uint64_t seed = 0;
  Updater updater = {};
  double l1 = 0, l2 = 0, weightDecay = 0;  ///< see TrainingOptions
  double clipNorm = 0, clipValue = 0;      ///< see TrainingOptions
  std::int64_t accumulate = 1;             ///< batches per step, see TrainingOptions
  std::vector<GraphInput> inputs = {};
  std::vector<GraphVertex> vertices = {};
  std::vector<GraphOutput> outputs = {};

  /// Appends a vertex. @return its name, for use as an input.
  std::string add(std::string name, Layer layer, std::vector<std::string> reads);
  void addOutput(std::string name, double weight = 1);

  TrainingOptions trainingOptions() const;
  std::string toJson() const;
  /// @throws InvalidArgument naming the field that is unknown, missing or of the wrong type.
  static ComputationGraphConfiguration fromJson(std::string_view json);
  /// The graph in Graphviz's language: vertices with their types and, if the inputs have shapes, output
  /// shapes. @throws InvalidArgument for an invalid graph.
  std::string toDot() const;
};

/// A network that is an acyclic graph: named inputs, several outputs, each with its own loss.
///
/// Outputs with a loss are Output layers; labels and masks of a batch have the outputs' names. The score is
/// the weighted sum of their losses. A worker's batch is weighted by the largest of the outputs' normalisers
/// (examples, or unmasked steps): several workers equal one on the joined batches only if the normalisers
/// have the same ratio in every batch.
class ComputationGraph final : public Network {
 public:
  /// @throws InvalidArgument naming the vertex or option: a repeated name, an unknown input, a cycle, a
  ///         vertex that no output needs, an Output that is not an output of the graph, an unused input, or
  ///         shapes that do not match.
  explicit ComputationGraph(ComputationGraphConfiguration configuration);
  /// As above, computing on `context`, which must outlive it.
  ComputationGraph(ComputationGraphConfiguration configuration, Context& context);

  const ComputationGraphConfiguration& configuration() const { return configuration_; }
  /// A copy with the same state. @throws InvalidArgument before `init()`.
  std::unique_ptr<ComputationGraph> clone();
  /// @throws FileError naming the fault of the file.
  static std::unique_ptr<ComputationGraph> load(const std::filesystem::path& path);
  std::string toJson() const override { return configuration_.toJson(); }

 private:
  std::vector<detail::NetworkInput> inputs() const override;
  detail::NetworkPlan layOut() const override;
  std::vector<detail::NetworkOutline> outline() const override;
  void setInputShapes(std::span<const Shape> shapes) override;
  std::unique_ptr<Network> make(Context* context) const override;

  ComputationGraph(ComputationGraphConfiguration configuration, Context* context);

  ComputationGraphConfiguration configuration_;
};

/// Draws a graph into an SVG file with Graphviz's program `dot`.
/// @throws FileError if the file cannot be written, InvalidArgument if there is no `dot` or as `toDot`, Error
///         if `dot` cannot be started or fails.
void drawSvg(const ComputationGraphConfiguration& configuration, const std::filesystem::path& path);

}  // namespace muster
