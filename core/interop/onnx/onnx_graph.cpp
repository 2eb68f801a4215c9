#include "muster/core/interop/onnx/detail/onnx_graph.h"

#include <array>

#include "muster/core/base/error.h"

namespace muster::detail {
namespace {

onnx::TensorProto::DataType typeOf(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return onnx::TensorProto::FLOAT;
    case DType::Int64:
      return onnx::TensorProto::INT64;
    default:
      throw InvalidArgument(
          fmt::format("onnx: a constant must be float32 or int64, got {}", toString(dtype)));
  }
}

onnx::ValueInfoProto valueInfo(const std::string& name, onnx::TensorProto::DataType type,
                               std::span<const OnnxGraph::Dimension> dimensions) {
  onnx::ValueInfoProto info;
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const auto& [size, symbol] : dimensions) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    if (symbol.empty())
      dimension.set_dim_value(size);
    else
      dimension.set_dim_param(symbol);
  }
  return info;
}

void setAttribute(onnx::AttributeProto& proto, const OnnxAttribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*number));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(*text);
  } else {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t element : std::get<std::vector<std::int64_t>>(value)) proto.add_ints(element);
  }
}

}  // namespace

std::string OnnxGraph::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int number = 2; !names_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
  return name;
}

void OnnxGraph::addInput(const std::string& name, DType dtype, std::span<const Dimension> dimensions) {
  require(names_.insert(name).second, "onnx: two inputs would be called {}", name);
  *graph_.add_input() = valueInfo(name, typeOf(dtype), dimensions);
}

void OnnxGraph::addOutput(const std::string& name, const std::string& value,
                          std::span<const Dimension> dimensions) {
  require(names_.insert(name).second, "onnx: an output and another value would both be called {}", name);
  auto& node = *graph_.add_node();
  node.set_op_type("Identity");
  node.set_name(name);
  node.add_input(value);
  node.add_output(name);
  *graph_.add_output() = valueInfo(name, onnx::TensorProto::FLOAT, dimensions);
}

void OnnxGraph::finishLengths() {
  if (!hasLengths_) return;
  require(usesLengths_, "onnx: no layer of this network reads lengths; export it without them");
  const Dimension batch{.symbol = "N"};
  *graph_.add_input() = valueInfo("lengths", onnx::TensorProto::INT32, {&batch, 1});
}

const Tensor& OnnxGraph::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  require(found != tensors_.end(), "onnx: the network has no tensor {}", name);
  return found->second;
}

std::string OnnxGraph::parameter(const std::string& name) {
  if (!parameters_.insert(name).second) return name;
  const std::string used = constant(name, tensor(name));
  require(used == name, "onnx: a tensor and another value would both be called {}", name);
  return name;
}

std::string OnnxGraph::constant(const std::string& wanted, const Tensor& values) {
  auto& proto = *graph_.add_initializer();
  proto.set_name(unique(wanted));
  proto.set_data_type(typeOf(values.dtype()));
  for (const std::int64_t size : values.shape()) proto.add_dims(size);
  proto.set_raw_data(values.raw(), values.bytes());
  return proto.name();
}

std::vector<std::string> OnnxGraph::add(const std::string& prefix, std::string_view op,
                                        const std::vector<std::string>& reads, std::size_t outputs,
                                        const OnnxAttributes& attributes) {
  std::vector<std::string> written;
  for (std::size_t i = 0; i < outputs; ++i) written.push_back(unique(fmt::format("{}/{}", prefix, op)));
  auto& node = *graph_.add_node();
  node.set_op_type(std::string(op));
  node.set_name(written.front());
  for (const auto& name : reads) node.add_input(name);
  for (const auto& name : written) node.add_output(name);
  for (const auto& [name, value] : attributes) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    setAttribute(attribute, value);
  }
  return written;
}

std::string OnnxGraph::lengths() {
  if (!hasLengths_) return {};
  usesLengths_ = true;
  return "lengths";
}

std::string OnnxGraph::realSteps(const std::string& sequence) {
  if (!hasLengths_ || !realSteps_.empty()) return realSteps_;
  const std::string given = lengths();
  const auto one = [&](std::string_view op, const std::vector<std::string>& reads,
                       const OnnxAttributes& attributes = {}) {
    return add("lengths", op, reads, 1, attributes).front();
  };
  const auto scalar = [&](std::string_view name, std::int64_t value) {
    Tensor tensor = Tensor::empty({}, DType::Int64);
    *tensor.data<std::int64_t>() = value;
    return constant(fmt::format("lengths/{}", name), tensor);
  };
  Tensor axis = Tensor::empty({1}, DType::Int64);
  *axis.data<std::int64_t>() = 1;
  const std::string last = constant("lengths/axis", axis), start = scalar("start", 0),
                    step = scalar("step", 1);
  const std::string steps = one("Gather", {one("Shape", {sequence}), step}, {{"axis", 0}});
  const std::string wide = one("Cast", {given}, {{"to", std::int64_t{onnx::TensorProto::INT64}}});
  realSteps_ = one("Less", {one("Range", {start, steps, step}), one("Unsqueeze", {wide, last})});
  return realSteps_;
}

}  // namespace muster::detail
