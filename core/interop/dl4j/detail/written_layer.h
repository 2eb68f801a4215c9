#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "muster/core/interop/dl4j/detail/options.h"
#include "muster/core/nn/detail/network_plan.h"
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

/// Writes the options of layers as Deeplearning4j's. What it does not have becomes a problem.
class LayerWriter {
 public:
  LayerWriter(const TrainingOptions& training, Problems& problems) : training_(training), problems_(problems) {}

  /// A node's counterparts, one after another; none for a node that only changes the form.
  /// @param form  of its first input.
  std::vector<WrittenLayer> write(const muster::detail::NetworkNode& node, Form form);
  /// The preprocessor between two forms; empty if none is needed. @param shape  of the value, here.
  boost::json::value preprocessor(Form from, Form to, const Shape& shape, std::string_view place);

 private:
  boost::json::object layer(const muster::detail::NetworkNode& node, std::string_view type) const;
  boost::json::object trained(const muster::detail::NetworkNode& node, std::string_view type,
                              Activation activation, const Init& init);
  boost::json::object updater(const muster::detail::NetworkNode& node);
  boost::json::value activation(const muster::detail::NetworkNode& node, Activation activation);
  void refuse(const muster::detail::NetworkNode& node, std::string_view text);

  const TrainingOptions& training_;
  Problems& problems_;
};

}  // namespace muster::dl4j::detail
