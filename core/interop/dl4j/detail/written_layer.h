#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/interop/dl4j/detail/options.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/nn/compile/network_plan.h"
#include "muster/core/nn/layers.h"
#include "muster/core/optim/optimizer.h"

namespace muster::dl4j::detail {

/// What a value is between two of Deeplearning4j's layers.
enum class Form {
  Rows,
  Image,
  Sequence,
  Steps,  ///< a sequence whose steps are rows there
};

/// What Deeplearning4j calls one layer or vertex, as its JSON.
struct WrittenLayer {
  std::string name;
  bool isLayer = true;
  boost::json::object json;
  std::vector<std::string> variables = {};
  Form takes = Form::Rows, gives = Form::Rows;
};
/// A layer's counterparts, one after another; none for a layer that only changes the form.
using WrittenLayers = std::vector<WrittenLayer>;

/// The options of a node, if its type is T.
template <typename T>
std::optional<T> optionsOf(const muster::detail::NetworkNode& node) {
  if (node.module->type() != T::kType) return std::nullopt;
  JsonWriter writer;
  node.module->clone()->fields(writer);
  JsonReader reader(writer.text());
  T options;
  options.fields(reader);
  return options;
}

/// An object of a Java class.
boost::json::object classed(std::string_view prefix, std::string_view name);
inline constexpr std::string_view kLayers = "org.deeplearning4j.nn.conf.layers.";
inline constexpr std::string_view kGraph = "org.deeplearning4j.nn.conf.graph.";

/// A node while it is written. What Deeplearning4j does not have becomes a problem.
class Writing {
 public:
  /// @param form  of the node's first input.
  Writing(const muster::detail::NetworkNode& node, Form form, const TrainingOptions& training,
          Problems& problems)
      : node_(node), form_(form), training_(training), problems_(problems) {}

  const std::string& name() const { return node_.name; }
  const Shape& input() const { return node_.inputShapes.front(); }
  const Shape& output() const { return node_.output; }
  Form form() const { return form_; }
  void refuse(std::string_view text) const;
  /// Warns of a training that is another there, with the same predictions.
  void differ(std::string_view text) const;

  /// The members of any layer.
  boost::json::object layer(std::string_view type) const;
  /// The members of a layer with parameters.
  boost::json::object trained(std::string_view type, Activation activation, const Init& init) const;
  boost::json::value activation(Activation activation) const;

  WrittenLayers layer(boost::json::object json, Form takes, Form gives,
                      std::vector<std::string> variables = {}) const;
  WrittenLayers vertex(boost::json::object json, Form gives) const;
  /// With a layer after it for an activation, which is part of the layer here.
  WrittenLayers activated(WrittenLayers layers, Activation activation) const;

 private:
  boost::json::object updater() const;

  const muster::detail::NetworkNode& node_;
  Form form_;
  const TrainingOptions& training_;
  Problems& problems_;
};

/// How the layers of one type are written.
struct WriteRule {
  std::string_view type;
  WrittenLayers (*write)(const muster::detail::NetworkNode& node, const Writing& to);
};

/// The rule that gives a layer's options to a function.
template <typename T, WrittenLayers (*write)(const T&, const Writing&)>
WriteRule writeRule() {
  return {T::kType, [](const muster::detail::NetworkNode& node, const Writing& to) {
            return write(*optionsOf<T>(node), to);
          }};
}

std::vector<WriteRule> imageWriteRules();
std::vector<WriteRule> sequenceWriteRules();
std::vector<WriteRule> otherWriteRules();

WrittenLayers writeNode(const muster::detail::NetworkNode& node, Form form, const TrainingOptions& training,
                        Problems& problems);

/// The preprocessor between two forms; null if none is needed. @param shape  of the value, here.
boost::json::value preprocessorOf(Form from, Form to, const Shape& shape, std::string_view place,
                                  Problems& problems);

boost::json::array pairOf(const std::array<std::int64_t, 2>& values);
/// The parameters' names there of a layer with weights.
std::vector<std::string> weightNames(bool bias);
/// The JSON of an updater and of the terms of the loss that act on the weights.
boost::json::object updaterJson(const Updater& updater, double learningRateScale, Problems& problems);
boost::json::array regularisationJson(const TrainingOptions& training);

}  // namespace muster::dl4j::detail
