#include "muster/core/interop/dl4j/detail/description.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <set>

#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostVertices = 2000;
constexpr std::string_view kChainInput = "features";

std::string placeOf(std::string_view kind, std::string_view name, std::string_view type) {
  return fmt::format("{} {} ({})", kind, name, type.empty() ? "no class" : type);
}

/// What every layer's configuration says of the training.
void requireKnownTraining(const Options& conf) {
  if (!conf.flag("miniBatch", true)) conf.refuse("miniBatch false: its gradients are sums over the batch");
  if (!conf.flag("minimize", true)) conf.refuse("minimize false: it maximises its score");
  const auto algorithm = conf.word({"optimizationAlgo"}, "STOCHASTIC_GRADIENT_DESCENT");
  if (algorithm != "STOCHASTIC_GRADIENT_DESCENT") conf.refuse("optimizationAlgo " + algorithm);
}

/// Java's long, whose bits are kept.
std::uint64_t seedIn(const Options& conf) {
  const json::value* seed = conf.find({"seed"});
  if (seed == nullptr || seed->is_uint64()) return seed == nullptr ? 0 : seed->get_uint64();
  if (seed->is_int64()) return static_cast<std::uint64_t>(seed->get_int64());
  conf.refuse("seed is not a whole number");
  return 0;
}

/// The layer in a configuration, without what is around it.
Vertex layerIn(const Options& conf, std::size_t number) {
  Options layer = conf.object({"layer"});
  const bool frozen = layer.type().starts_with("FrozenLayer");
  Options inner = frozen ? layer.object({"layer", "underlying"}) : layer;
  std::string name = inner.word({"layerName"}, layer.word({"layerName"}));
  if (name.empty()) name = fmt::format("layer{}", number);
  const Options placed(inner.json(), placeOf("layer", name, inner.type()), conf.problems());
  return {.name = std::move(name),
          .frozen = frozen,
          .stopsGradient = layer.type() == "FrozenLayer",
          .options = placed};
}

void addChain(const Options& root, Description& all) {
  const json::value* confs = root.find({"confs"});
  require(confs->is_array() && !confs->get_array().empty() && confs->get_array().size() <= kMostVertices,
          "its configuration has no layers, or more than {}", kMostVertices);
  const Options preprocessors = root.object({"inputPreProcessors"});
  std::set<std::string> names;
  std::string before(kChainInput);
  for (std::size_t i = 0; i < confs->get_array().size(); ++i) {
    const json::value& conf = confs->get_array()[i];
    require(conf.is_object(), "its configuration has a layer that is not an object");
    const Options general(conf.get_object(), {}, root.problems());
    requireKnownTraining(general);
    if (i == 0) all.seed = seedIn(general);
    Vertex vertex = layerIn(general, i);
    if (!names.insert(vertex.name).second) names.insert(vertex.name = fmt::format("layer{}", i));
    const std::string key = std::to_string(i);
    if (preprocessors.find({key})) vertex.preprocessor = preprocessors.object({key}, vertex.options.place());
    vertex.inputs = {before};
    before = vertex.name;
    all.vertices.push_back(std::move(vertex));
  }
  all.inputs = {std::string(kChainInput)};
  all.outputs = {before};
}

void addGraph(const Options& root, Description& all) {
  all.chain = false;
  all.inputs = root.words("networkInputs");
  all.outputs = root.words("networkOutputs");
  const Options vertices = root.object({"vertices"}), reads = root.object({"vertexInputs"});
  require(!vertices.json().empty() && vertices.json().size() <= kMostVertices,
          "its configuration has no vertices, or more than {}", kMostVertices);
  std::vector<Vertex> made;
  for (const auto& [key, value] : vertices.json()) {
    const std::string name(key);
    require(value.is_object(), "vertex {} of its configuration is not an object", name);
    Options options(value.get_object(), placeOf("vertex", name, {}), root.problems());
    options = Options(value.get_object(), placeOf("vertex", name, options.type()), root.problems());
    Vertex vertex{.name = name, .isLayer = options.type() == "LayerVertex", .options = options};
    if (vertex.isLayer) {
      const Options conf = options.object({"layerConf"});
      requireKnownTraining(Options(conf.json(), {}, root.problems()));
      vertex = layerIn(conf, made.size());
      vertex.name = name;
      vertex.options =
          Options(vertex.options.json(), placeOf("layer", name, vertex.options.type()), root.problems());
      if (options.find({"preProcessor"}))
        vertex.preprocessor = options.object({"preProcessor"}, vertex.options.place());
    }
    vertex.inputs = reads.words(name);
    made.push_back(std::move(vertex));
  }
  all.seed = seedIn(root.object({"defaultConfiguration"}));
  all.vertices = inOrder(std::move(made), all.inputs, root.words("topologicalOrderStr"));
}

/// Sorts ascending numbers as Java's HashSet of Integers visits them: by the place in its table, which has 16
/// places, and twice as many whenever more than three quarters of them are filled.
void sortAsHashSet(std::vector<std::size_t>& numbers) {
  std::size_t places = 16;
  while (4 * numbers.size() > 3 * places) places *= 2;
  std::ranges::stable_sort(numbers, {}, [&](std::size_t number) { return number % places; });
}

/// Places of all inputs and vertices in Deeplearning4j's own order.
std::vector<std::size_t> ownOrder(const std::vector<std::set<std::size_t>>& reads) {
  std::vector<std::set<std::size_t>> missing = reads;
  std::vector<std::vector<std::size_t>> readers(reads.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    for (const std::size_t input : reads[i]) readers[input].push_back(i);
    if (reads[i].empty()) order.push_back(i);
  }
  for (auto& numbers : readers) sortAsHashSet(numbers);
  for (std::size_t next = 0; next < order.size(); ++next)
    for (const std::size_t reader : readers[order[next]]) {
      missing[reader].erase(order[next]);
      if (missing[reader].empty()) order.push_back(reader);
    }
  return order;
}

}  // namespace

std::optional<std::size_t> Description::indexOf(std::string_view name) const {
  const auto found = std::ranges::find(vertices, name, &Vertex::name);
  if (found == vertices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - vertices.begin());
}

std::vector<Vertex> inOrder(std::vector<Vertex> vertices, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& stated) {
  std::map<std::string, std::size_t, std::less<>> places;
  for (const auto& name : inputs) places.emplace(name, places.size());
  for (const auto& vertex : vertices) {
    const auto place = places.size();
    require(places.emplace(vertex.name, place).second, "its graph has two inputs or vertices called {}",
            vertex.name);
  }
  require(places.size() == inputs.size() + vertices.size(), "its graph has two inputs of one name");
  std::vector<std::set<std::size_t>> reads(places.size());
  for (const auto& vertex : vertices)
    for (const auto& input : vertex.inputs) {
      const auto found = places.find(input);
      require(found != places.end(), "vertex {} of its graph reads {}, which it does not have", vertex.name,
              input);
      reads[places.at(vertex.name)].insert(found->second);
    }
  std::vector<std::size_t> order = ownOrder(reads);
  for (const auto& vertex : vertices)
    require(std::ranges::find(order, places.at(vertex.name)) != order.end(),
            "its graph has a cycle through vertex {}", vertex.name);
  if (!stated.empty()) {
    std::set<std::size_t> seen;
    order.clear();
    for (const auto& name : stated) {
      const auto found = places.find(name);
      require(found != places.end() && seen.insert(found->second).second &&
                  std::ranges::includes(seen, reads[found->second]),
              "its topologicalOrderStr names {} before its inputs, twice, or not as a vertex", name);
      order.push_back(found->second);
    }
    require(order.size() == places.size(), "its topologicalOrderStr has {} of {} vertices", order.size(),
            places.size());
  }
  std::vector<Vertex> sorted;
  for (const std::size_t place : order)
    if (place >= inputs.size()) sorted.push_back(std::move(vertices[place - inputs.size()]));
  return sorted;
}

Description describe(std::string_view text, Problems& problems) {
  Description all;
  all.document = std::make_unique<json::value>(parseJson(text));
  require(all.document->is_object(), "its configuration is not a JSON object");
  const Options root(all.document->get_object(), {}, problems);
  require(root.find({"confs"}) || root.find({"vertices"}),
          "its configuration has neither confs, as a MultiLayerNetwork's, nor vertices, as a "
          "ComputationGraph's");
  if (root.find({"confs"}))
    addChain(root, all);
  else
    addGraph(root, all);
  all.iteration = root.count({"iterationCount"}, 0);
  all.epoch = root.count({"epochCount"}, 0);
  if (root.word({"backpropType"}, "Standard") == "TruncatedBPTT")
    all.truncated = std::max<std::int64_t>(1, root.count({"tbpttFwdLength"}, 20));
  return all;
}

}  // namespace muster::dl4j::detail
