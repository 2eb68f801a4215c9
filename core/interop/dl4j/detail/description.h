#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/interop/dl4j/detail/options.h"

namespace muster::dl4j::detail {

/// A layer of a chain, or a vertex of a graph.
struct Vertex {
  std::string name;
  bool isLayer = true;
  bool frozen = false;
  bool stopsGradient = false;  ///< frozen, and no gradient reaches what is before it
  Options options;             ///< of the layer itself, without FrozenLayer around it
  std::optional<Options> preprocessor = {};
  std::vector<std::string> inputs = {};  ///< network inputs or other vertices

  std::string type() const { return options.type(); }
  std::string preprocessorType() const { return preprocessor ? preprocessor->type() : ""; }
};

/// A network as a file's configuration describes it, a chain as a graph of one path.
struct Description {
  std::unique_ptr<boost::json::value> document;  ///< `Options` refer to it
  bool chain = true;
  std::vector<std::string> inputs, outputs;
  std::vector<Vertex> vertices;  ///< in the order of their parameters, each after its inputs
  std::uint64_t seed = 0;
  std::int64_t iteration = 0, epoch = 0;
  std::int64_t truncated = 0;  ///< steps of truncated backpropagation through time; 0: whole sequences

  /// The place in `vertices`; nothing for a network input.
  std::optional<std::size_t> indexOf(std::string_view name) const;
};

/// Reads a configuration's JSON. Options that muster lacks become problems.
/// @throws InvalidArgument for what is not a configuration, as a graph with a cycle.
Description describe(std::string_view json, Problems& problems);

/// The order of a graph's parameters: the one that the configuration states, if it does, or Deeplearning4j's
/// own (Kahn's algorithm, by number of vertex). @throws InvalidArgument for a cycle or an unknown input.
std::vector<Vertex> inOrder(std::vector<Vertex> vertices, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& stated);

}  // namespace muster::dl4j::detail
