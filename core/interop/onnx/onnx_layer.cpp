#include "muster/core/interop/onnx/onnx_layer.h"

#include <algorithm>
#include <numbers>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"
#include "muster/core/interop/onnx/detail/onnx_graph.h"
#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

struct Rules {
  Rules() {
    detail::addOnnxImageRules(byType);
    detail::addOnnxSequenceRules(byType);
    detail::addOnnxOtherRules(byType);
  }
  Mutex mutex;
  detail::OnnxRules byType MUSTER_GUARDED_BY(mutex);
};

Rules& rules() {
  static Rules instance;
  return instance;
}

}  // namespace

void detail::addOnnxRule(std::string_view type, OnnxRule rule) {
  Rules& all = rules();
  const Lock lock(all.mutex);
  all.byType.insert_or_assign(std::string(type), std::move(rule));
}

detail::OnnxRule detail::onnxRule(std::string_view type) {
  Rules& all = rules();
  const Lock lock(all.mutex);
  const auto found = all.byType.find(type);
  require(found != all.byType.end(),
          "there is no rule for layers of type {}; registerOnnx (core/interop/onnx/onnx_layer.h) adds one",
          type);
  return found->second;
}

void detail::copyFields(const Module& module, const std::function<void(Fields&)>& visit) {
  JsonWriter writer;
  module.clone()->fields(writer);  // visit a copy: a visit may write
  JsonReader reader(writer.text());
  visit(reader);
}

const std::string& OnnxLayer::name() const {
  return node_.name;
}
const Shape& OnnxLayer::inputShape() const {
  return node_.inputShapes.front();
}
const Shape& OnnxLayer::outputShape() const {
  return node_.output;
}

Tensor OnnxLayer::values(std::string_view parameter) const {
  return graph_.tensor(fmt::format("{}.{}", node_.name, parameter));
}
bool OnnxLayer::has(std::string_view parameter) const {
  return graph_.hasTensor(fmt::format("{}.{}", node_.name, parameter));
}
std::string OnnxLayer::parameter(std::string_view parameter) {
  return graph_.parameter(fmt::format("{}.{}", node_.name, parameter));
}

std::string OnnxLayer::constant(std::string_view name, const Tensor& values) {
  return graph_.constant(fmt::format("{}/{}", node_.name, name), values);
}
std::string OnnxLayer::constant(std::string_view name, std::span<const std::int64_t> values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, DType::Int64);
  std::ranges::copy(values, tensor.data<std::int64_t>());
  return constant(name, tensor);
}
std::string OnnxLayer::constant(std::string_view name, float value) {
  Tensor tensor = Tensor::empty({});
  *tensor.data<float>() = value;
  return constant(name, tensor);
}

std::string OnnxLayer::add(std::string_view op, const std::vector<std::string>& reads,
                           const OnnxAttributes& attributes) {
  return addMany(op, reads, 1, attributes).front();
}
std::vector<std::string> OnnxLayer::addMany(std::string_view op, const std::vector<std::string>& reads,
                                            std::size_t outputs, const OnnxAttributes& attributes) {
  return graph_.add(node_.name, op, reads, outputs, attributes);
}

std::string OnnxLayer::activation(Activation activation, const std::string& value) {
  switch (activation) {
    case Activation::Identity:
      return value;
    case Activation::ReLU:
      return add("Relu", {value});
    case Activation::LeakyReLU:
      return add("LeakyRelu", {value}, {{"alpha", double{kLeakySlope}}});
    case Activation::Tanh:
      return add("Tanh", {value});
    case Activation::Sigmoid:
      return add("Sigmoid", {value});
    case Activation::Softmax:  // over the channels of images, else over the last dimension
      return add("Softmax", {value}, {{"axis", outputShape().rank() == 3 ? 1 : -1}});
    case Activation::GELU: {
      const auto constantOf = [&](const char* name, double number) {
        return constant(name, static_cast<float>(number));
      };
      const std::string error =
          add("Erf", {add("Mul", {value, constantOf("gelu/scale", 1 / std::numbers::sqrt2)})});
      const std::string twice = add("Mul", {value, add("Add", {error, constantOf("gelu/one", 1)})});
      return add("Mul", {twice, constantOf("gelu/half", 0.5)});
    }
  }
  throw InvalidArgument("onnx: there is no such activation");
}

std::string OnnxLayer::lengths() {
  if (graph_.hasLengths())
    require(inputShape()[0] == graph_.steps(),
            "it reads lengths, but its sequences have {} steps and those of the input {}", inputShape()[0],
            graph_.steps());
  return graph_.lengths();
}

std::string OnnxLayer::realSteps() {
  return lengths().empty() ? std::string() : graph_.realSteps(input());
}

}  // namespace muster
