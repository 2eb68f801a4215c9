#include "tests/fuzz/schema_networks.h"

#include <boost/json/serialize.hpp>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/network_schema.h"
#include "muster/core/io/network_json.h"
#include "tests/fuzz/networks.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;
using muster::detail::networkSchema, muster::detail::NetworkSchema;

constexpr std::int64_t kSmall = 512;  // elements

/// An object of a type that a schema describes, with its defaults, and sizes that it requires. @param key  of
/// the type's name.
json::object presetOf(const json::value& rule, std::string_view key) {
  json::object made{{key, rule.at("if").at("properties").at(key).at("const")}};
  for (const auto& [name, field] : rule.at("then").at("properties").as_object())
    if (const auto* const preset = field.as_object().if_contains("default")) made[name] = *preset;
  if (const auto* const required = rule.at("then").as_object().if_contains("required"))
    for (const auto& size : required->as_array()) made.emplace(size.as_string(), 2);
  return made;
}

/// The object, and with other values for fields that are 0 or empty by default, which may have to be given.
std::vector<json::object> candidatesOf(const json::object& preset) {
  std::vector<json::object> all{preset};
  json::object filled = preset;
  for (const auto& [key, value] : preset) {
    json::value given;
    if (value.is_int64() && value.get_int64() == 0) given = 2;
    if (value.is_array() && value.get_array().empty()) given = json::array{2, 2};
    if (given.is_null()) continue;
    all.push_back(preset);
    all.back()[key] = given;
    filled[key] = given;
  }
  all.push_back(std::move(filled));
  return all;
}

/// Why a network is not valid or not small; "" if it is both.
std::string problemOf(const json::value& network) {
  try {
    return isSmall(*networkFromJson(json::serialize(network)), kSmall) ? "" : "it is large";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

/// A network of nothing but its head.
json::object emptyNetwork(const NetworkSchema& schema, std::size_t format) {
  json::object made = presetOf(schema.network.at("allOf").at(format), "format");
  made["version"] = 1;
  return made;
}

json::object output() {
  return {{"type", "output"}, {"classes", 2}};
}

/// What may follow a layer, so that the network has a loss.
std::vector<json::array> tails() {
  return {json::array(), json::array{output()}, json::array{json::object{{"type", "flatten"}}, output()}};
}

std::vector<json::value> chainsOf(const json::object& head, const json::object& layer) {
  std::vector<json::value> all;
  for (const auto& tail : tails())
    for (const json::array& shape : {json::array{4}, json::array{2, 6, 6}, json::array{6, 4}}) {
      json::object chain = head;
      chain["inputShape"] = shape;
      json::array layers{layer};
      layers.insert(layers.end(), tail.begin(), tail.end());
      chain["layers"] = std::move(layers);
      all.emplace_back(std::move(chain));
    }
  return all;
}

json::value graphOf(json::object head, const json::array& shape, std::size_t inputs,
                    const json::array& layers) {
  constexpr std::array<std::string_view, 5> kNames{"left", "right", "a", "b", "c"};
  json::array reads, vertices, given;
  for (std::size_t i = 0; i < inputs; ++i) {
    given.push_back(json::object{{"name", kNames[i]}, {"shape", shape}});
    reads.emplace_back(kNames[i]);
  }
  for (std::size_t v = 0; v < layers.size(); ++v) {
    json::object vertex = layers[v].as_object();
    vertex["vertex"] = kNames[2 + v];
    vertex["inputs"] = std::exchange(reads, {json::value(kNames[2 + v])});
    vertices.emplace_back(std::move(vertex));
  }
  head["inputs"] = std::move(given);
  head["outputs"] = json::array{json::object{{"name", vertices.back().at("vertex")}, {"weight", 1.0}}};
  head["vertices"] = std::move(vertices);
  return head;
}

std::vector<json::value> graphsOf(const json::object& head, const json::object& layer) {
  std::vector<json::value> all;
  for (const auto& tail : tails())
    for (const json::array& shape : {json::array{4}, json::array{2, 6, 6}, json::array{6, 4}})
      for (const std::size_t inputs : {2, 1}) {
        json::array layers{layer};
        layers.insert(layers.end(), tail.begin(), tail.end());
        all.push_back(graphOf(head, shape, inputs, layers));
      }
  return all;
}

using Wrap = std::function<std::vector<json::value>(const json::object& part)>;

/// For each type of a family the first usable network with it.
void addNetworks(const json::value& family, const Wrap& wrap, std::vector<json::value>& all) {
  const auto find = [&](const json::object& preset) {
    std::string problem;
    for (const auto& part : candidatesOf(preset))
      for (auto& network : wrap(part))
        if (problem = problemOf(network); problem.empty()) return std::move(network);
    defect("no small network has " + json::serialize(preset) + ": " + problem);
  };
  for (const auto& rule : family.at("allOf").as_array()) all.push_back(find(presetOf(rule, "type")));
}

/// For each type in the library's schema.
std::vector<json::value> schemaNetworks() {
  const auto schema = networkSchema();
  const json::object chain = emptyNetwork(schema, 0), graph = emptyNetwork(schema, 1);
  const auto familyOf = [&](std::string_view name) -> const json::value& {
    return schema.definitions.at(name);
  };
  const auto withUpdater = [&](const json::object& updater) {
    json::object head = chain;
    head["updater"] = updater;
    return chainsOf(head, output());
  };
  std::vector<json::value> all;
  addNetworks(
      familyOf("layer"), [&](const json::object& layer) { return chainsOf(chain, layer); }, all);
  addNetworks(
      familyOf("vertex"), [&](const json::object& layer) { return graphsOf(graph, layer); }, all);
  addNetworks(familyOf("updater"), withUpdater, all);
  addNetworks(
      familyOf("schedule"),
      [&](const json::object& schedule) {
        return withUpdater({{"type", "sgd"}, {"learningRate", schedule}});
      },
      all);
  addNetworks(
      familyOf("initialiser"),
      [&](const json::object& init) {
        json::object layer = output();
        layer["init"] = init;
        return chainsOf(chain, layer);
      },
      all);
  return all;
}

}  // namespace

const std::vector<json::value>& networkDocuments() {
  static const auto all = [] {
    auto made = schemaNetworks();
    for (const auto& chain : smallChains()) made.push_back(*jsonIn(chain.toJson()));
    made.push_back(*jsonIn(smallGraph().toJson()));
    return made;
  }();
  return all;
}

const Vocabulary& networkVocabulary() {
  static const Vocabulary all(networkDocuments(), networkSchema().definitions);
  return all;
}

const JsonSweep& networkSweep() {
  static const JsonSweep all(networkDocuments(), networkVocabulary());
  return all;
}

}  // namespace muster::fuzz
