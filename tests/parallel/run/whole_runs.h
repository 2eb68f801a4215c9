// Run files with every field, and JSON with one of them wrong.
#pragma once

#include <boost/json.hpp>
#include <type_traits>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/parallel/run/run_file.h"
#include "tests/support/test.h"

namespace muster::test {

/// A run file with every field that its kind of data has.
inline RunFile whole(std::string_view type) {
  auto network = convnet();
  network.accumulate = 2;
  RunFile run;
  run.data = {.type = std::string(type),
              .trainImages = "i",
              .trainLabels = "l",
              .testImages = "i2",
              .testLabels = "l2",
              .train = "t",
              .test = "t2",
              .classWeights = {1, 2}};
  run.network = network.toJson();
  run.training.strategyOptions = "every=3";
  run.listeners.checkpoints = RunCheckpoints{
      .directory = "c", .keepLast = 2, .best = RunMonitor{.monitor = Monitor::Loss, .mode = "min"}};
  run.listeners.earlyStopping = RunEarlyStopping{.monitored = {.monitor = Monitor::Accuracy, .mode = "max"}};
  return run;
}

inline boost::json::value asJson(const RunFile& run) {
  return boost::json::parse(run.toJson());
}

inline std::string problem(const boost::json::value& run, const std::vector<std::string>& sets = {}) {
  return thrown<InvalidArgument>([&] { RunFile::parse(boost::json::serialize(run), sets); });
}

/// Calls `visit(path, field, value, in)` for each member of each object, the outermost first.
inline void eachField(boost::json::value& value, const std::string& path, const auto& visit) {
  if (auto* array = value.if_array())
    for (std::size_t i = 0; i < array->size(); ++i)
      eachField((*array)[i], path + "[" + std::to_string(i) + "]", visit);
  auto* object = value.if_object();
  if (!object) return;
  std::vector<std::string> keys;
  for (const auto& member : *object) keys.emplace_back(member.key());
  for (const auto& key : keys) {
    const std::string inside = path.empty() ? key : path + "." + key;
    visit(inside, key, *object);
    eachField(object->at(key), inside, visit);
  }
}

/// A run file with this network.
boost::json::value withNetwork(const auto& configuration) {
  auto run = whole("generated");
  run.network = configuration.toJson();
  return asJson(run);
}

template <typename... T>
std::vector<std::string> typesIn(std::type_identity<std::tuple<T...>>) {
  return {std::string(T::kType)...};
}

inline const std::vector<std::string>& layerTypes() {
  static const auto all = typesIn(std::type_identity<detail::LibraryLayers>());
  return all;
}

/// A graph with a vertex of this type.
inline ComputationGraphConfiguration graphWith(const std::string& type) {
  const Layer layer = Layer(std::shared_ptr<const Module>(Layer::registry().make(type)))
                          .learningRate(0.5)
                          .frozen()
                          .on(Device::cpu());
  return {.inputs = {{.name = "in", .shape = {4}}},
          .vertices = {{.name = "v", .layer = layer, .inputs = {"in"}}},
          .outputs = {{.name = "v", .weight = 0.5}}};
}

/// A value of no type that the field could have.
inline boost::json::value wrong(const boost::json::value& right) {
  if (right.is_string()) return 17.5;
  if (right.is_bool() || right.is_number()) return "x";
  return true;
}

}  // namespace muster::test
