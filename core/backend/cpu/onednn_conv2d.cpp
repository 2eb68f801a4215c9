#include "muster/core/backend/cpu/onednn_conv2d.h"

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "muster/core/backend/cpu/onednn.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kWinograd = dnnl::algorithm::convolution_winograd;

dnnl::memory::dims dims(const std::array<std::int64_t, 2>& sizes) {
  return {sizes[0], sizes[1]};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

/// An activation in the format that oneDNN prefers.
Desc anyFormat(const Shape& shape) {
  return {{shape.begin(), shape.end()}, kFloat, Tag::any};
}

/// With groups, the descriptor has a leading dimension for them.
Desc weightDesc(const Conv2dShape& s, Tag dense, Tag grouped) {
  const std::int64_t in = s.inChannels / s.groups;
  if (s.groups == 1) return {{s.outChannels, in, s.kernel[0], s.kernel[1]}, kFloat, dense};
  return {{s.groups, s.outChannels / s.groups, in, s.kernel[0], s.kernel[1]}, kFloat, grouped};
}

Desc biasDesc(const Conv2dShape& s) {
  return {{s.outChannels}, kFloat, Tag::a};
}

/// Describes one pass of a convolution. oneDNN 3 takes at once what oneDNN 2 took in a descriptor of its own.
/// @param hint  the forward pass, for a backward pass.
template <typename Primitive, typename... Hint, typename... Arguments>
auto describe(const dnnl::engine& engine, const std::tuple<Hint...>& hint, const Arguments&... arguments) {
  const auto make = [&](const auto&... forward) {
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(engine, arguments..., forward..., attributes());
#else
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes(), engine,
                                              forward...);
#endif
  };
  return std::apply(make, hint);
}

/// The three primitives' descriptors for activations in these formats, and weights in oneDNN's formats.
struct PrimitiveDescs {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backwardData;
  dnnl::convolution_backward_weights::primitive_desc backwardWeights;

  PrimitiveDescs(const Conv2dShape& s, const Desc& input, const Desc& output, dnnl::algorithm algorithm,
                 const dnnl::engine& engine) {
    const Desc weight = weightDesc(s, Tag::any, Tag::any), bias = biasDesc(s);
    const auto stride = dims(s.stride), padding = dims(s.padding);
    const dnnl::memory::dims gaps{s.dilation[0] - 1, s.dilation[1] - 1};  // oneDNN counts skipped pixels
    forward =
        describe<dnnl::convolution_forward>(engine, std::tie(), dnnl::prop_kind::forward_training, algorithm,
                                            input, weight, bias, output, stride, gaps, padding, padding);
    backwardData = describe<dnnl::convolution_backward_data>(engine, std::tie(forward), algorithm, input,
                                                             weight, output, stride, gaps, padding, padding);
    backwardWeights = describe<dnnl::convolution_backward_weights>(
        engine, std::tie(forward), algorithm, input, weight, bias, output, stride, gaps, padding, padding);
  }
};

/// The caller's formats.
struct Formats {
  Desc input, weight, bias, output;
};

bool isFast(const dnnl::primitive_desc& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos;
}

/// One primitive between the caller's formats and its own. Where they differ, a copy is reordered before or
/// after. Copies and scratch memory are in the context's workspace.
class Pass {
 public:
  Pass(const dnnl::primitive_desc& desc, const dnnl::primitive& primitive, State& state)
      : state_(state), main_(primitive, state) {
    scratch(main_, desc.scratchpad_desc());
  }

  void input(int argument, const Desc& given, const Desc& wanted) {
    slots_.push_back(given == wanted ? Slot{&main_, main_.add(argument, wanted)}
                                     : reorder(before_, argument, given, wanted, true));
  }
  void output(int argument, const Desc& given, const Desc& made) {
    slots_.push_back(given == made ? Slot{&main_, main_.add(argument, made)}
                                   : reorder(after_, argument, given, made, false));
  }

  /// `data` is in the order in which inputs and outputs were added.
  void run(std::initializer_list<void*> data) {
    auto slot = slots_.begin();
    for (void* pointer : data) {
      slot->execution->bind(slot->index, pointer);
      ++slot;
    }
    for (const auto& [place, offset] : places_)
      place.execution->bind(place.index, state_.workspace.data() + offset);
    for (auto& execution : before_) execution->run();
    main_.run();
    for (auto& execution : after_) execution->run();
  }

 private:
  struct Slot {  // receives a pointer of the caller
    Execution* execution;
    std::size_t index;
  };
  using Executions = std::vector<std::unique_ptr<Execution>>;

  Slot reorder(Executions& list, int argument, const Desc& given, const Desc& inside, bool before) {
    const std::size_t copy = place(inside.get_size());
    places_.push_back({{&main_, main_.add(argument, inside)}, copy});
    const Desc& from = before ? given : inside;
    const Desc& to = before ? inside : given;
    const dnnl::reorder::primitive_desc desc(state_.engine, from, state_.engine, to, attributes());
    Execution& execution = *list.emplace_back(std::make_unique<Execution>(dnnl::reorder(desc), state_));
    scratch(execution, desc.scratchpad_desc());
    const Slot source{&execution, execution.add(DNNL_ARG_FROM, from)};
    const Slot target{&execution, execution.add(DNNL_ARG_TO, to)};
    places_.push_back({before ? target : source, copy});
    return before ? source : target;
  }

  void scratch(Execution& execution, const Desc& desc) {
    places_.push_back({{&execution, execution.add(DNNL_ARG_SCRATCHPAD, desc)}, place(desc.get_size())});
  }

  /// Reserves so many bytes of the workspace, aligned to a cache line. @return their offset.
  std::size_t place(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ = (offset + bytes + kLine - 1) / kLine * kLine;
    state_.workspace.reserve(bytes_);
    return offset;
  }

  static constexpr std::size_t kLine = 64;

  State& state_;
  Execution main_;
  std::size_t bytes_ = 0;  // of the workspace
  Executions before_, after_;
  std::vector<Slot> slots_;                           // [argument of run]
  std::vector<std::pair<Slot, std::size_t>> places_;  // slots in the workspace, and their offsets
};

}  // namespace

/// What is decided before primitives are created: the caller's formats, and those of each pass.
struct OneDnnConv2dPlanner::Descriptors {
  Conv2dShape shape;
  Layout input, output;
  Context& context;
  Formats given;
  PrimitiveDescs native;  // in the caller's activation formats
  PrimitiveDescs free;    // in the formats that oneDNN prefers
  Winograd passes;
  std::optional<PrimitiveDescs> winograd;  // in the caller's activation formats; empty if no pass uses it

  Descriptors(const Conv2dShape& s, Layout in, Layout out, Winograd w, Context& c)
      : shape(s),
        input(in),
        output(out),
        context(c),
        given{activationDesc(s.input(), in), weightDesc(s, Tag::oihw, Tag::goihw), biasDesc(s),
              activationDesc(s.output(), out)},
        native(s, given.input, given.output, kDirect, stateOf(c).engine),
        free(s, anyFormat(s.input()), anyFormat(s.output()), kDirect, stateOf(c).engine),
        passes(w) {
    if (w != Winograd{}) winograd.emplace(s, given.input, given.output, kWinograd, stateOf(c).engine);
  }
};

namespace {

class OneDnnConv2dPlan final : public Conv2dPlan {
 public:
  explicit OneDnnConv2dPlan(const OneDnnConv2dPlanner::Descriptors& d)
      : shape_(d.shape),
        input_(d.input),
        output_(d.output),
        bias_(Tensor::zeros({d.shape.outChannels})),
        unwanted_(Tensor::zeros({d.shape.outChannels})) {
    State& state = stateOf(d.context);
    const auto pick = [&](bool winograd, auto pass) {
      if (winograd) return (*d.winograd).*pass;
      return !isFast(d.native.*pass) && isFast(d.free.*pass) ? d.free.*pass : d.native.*pass;
    };
    planForward(pick(d.passes.forward, &PrimitiveDescs::forward), d.given, state);
    planBackwardData(pick(d.passes.backwardData, &PrimitiveDescs::backwardData), d.given, state);
    planBackwardWeights(pick(d.passes.backwardWeights, &PrimitiveDescs::backwardWeights), d.given, state);
  }

  Layout inputLayout() const override { return input_; }
  Layout outputLayout() const override { return output_; }
  std::string implementation() const override { return name_; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    expectInput("x", x);
    expectWeight("weight", weight);
    expectOutput("y", y);
    if (bias.defined()) expectBias("bias", bias);
    forward_->run({x.raw(), weight.raw(), bias.defined() ? bias.raw() : bias_.raw(), y.raw()});
  }

  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override {
    expectOutput("gradY", gradY);
    expectWeight("weight", weight);
    expectInput("gradX", gradX);
    backwardData_->run({gradY.raw(), weight.raw(), gradX.raw()});
  }

  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override {
    expectInput("x", x);
    expectOutput("gradY", gradY);
    expectWeight("gradWeight", gradWeight);
    if (gradBias.defined()) expectBias("gradBias", gradBias);
    backwardWeights_->run(
        {x.raw(), gradY.raw(), gradWeight.raw(), gradBias.defined() ? gradBias.raw() : unwanted_.raw()});
  }

 private:
  void planForward(const dnnl::convolution_forward::primitive_desc& desc, const Formats& given,
                   State& state) {
    name_ = fmt::format("oneDNN {}, {}", nameOf(output_), desc.impl_info_str());
    forward_ = std::make_unique<Pass>(desc, dnnl::convolution_forward(desc), state);
    forward_->input(DNNL_ARG_SRC, given.input, desc.src_desc());
    forward_->input(DNNL_ARG_WEIGHTS, given.weight, desc.weights_desc());
    forward_->input(DNNL_ARG_BIAS, given.bias, desc.bias_desc());
    forward_->output(DNNL_ARG_DST, given.output, desc.dst_desc());
  }

  void planBackwardData(const dnnl::convolution_backward_data::primitive_desc& desc, const Formats& given,
                        State& state) {
    backwardData_ = std::make_unique<Pass>(desc, dnnl::convolution_backward_data(desc), state);
    backwardData_->input(DNNL_ARG_DIFF_DST, given.output, desc.diff_dst_desc());
    backwardData_->input(DNNL_ARG_WEIGHTS, given.weight, desc.weights_desc());
    backwardData_->output(DNNL_ARG_DIFF_SRC, given.input, desc.diff_src_desc());
  }

  void planBackwardWeights(const dnnl::convolution_backward_weights::primitive_desc& desc,
                           const Formats& given, State& state) {
    backwardWeights_ = std::make_unique<Pass>(desc, dnnl::convolution_backward_weights(desc), state);
    backwardWeights_->input(DNNL_ARG_SRC, given.input, desc.src_desc());
    backwardWeights_->input(DNNL_ARG_DIFF_DST, given.output, desc.diff_dst_desc());
    backwardWeights_->output(DNNL_ARG_DIFF_WEIGHTS, given.weight, desc.diff_weights_desc());
    backwardWeights_->output(DNNL_ARG_DIFF_BIAS, given.bias, desc.diff_bias_desc());
  }

  void expectInput(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape_.input(), input_});
  }
  void expectOutput(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape_.output(), output_});
  }
  void expectWeight(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape_.weight()});
  }
  void expectBias(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("conv2d", name, tensor, {Shape{shape_.outChannels}});
  }

  Conv2dShape shape_;
  Layout input_, output_;
  std::string name_;
  Tensor bias_;      // zeros, for calls without a bias
  Tensor unwanted_;  // receives a bias gradient that is not needed
  std::unique_ptr<Pass> forward_, backwardData_, backwardWeights_;
};

}  // namespace

bool winogradConv2dSupports(const Conv2dShape& shape, Context& context) {
  if (shape.kernel != std::array<std::int64_t, 2>{3, 3}) return false;
  const std::scoped_lock lock(planningMutex());
  try {
    PrimitiveDescs(shape, activationDesc(shape.input(), Layout::ChannelBlocks),
                   activationDesc(shape.output(), Layout::ChannelBlocks), kWinograd, stateOf(context).engine);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

OneDnnConv2dPlanner::OneDnnConv2dPlanner(const Conv2dShape& shape, Layout input, Layout output,
                                         Context& context, Winograd winograd) {
  descriptors_ = planVendor("planning a convolution", [&] {
    return std::make_unique<Descriptors>(shape, input, output, winograd, context);
  });
}

OneDnnConv2dPlanner::~OneDnnConv2dPlanner() = default;

bool OneDnnConv2dPlanner::fast(bool inputGradient) const {
  const auto& native = descriptors_->native;
  return isFast(native.forward) && isFast(native.backwardWeights) &&
         (!inputGradient || isFast(native.backwardData));
}

std::unique_ptr<Conv2dPlan> OneDnnConv2dPlanner::plan() {
  return planVendor("planning a convolution",
                    [&] { return std::make_unique<OneDnnConv2dPlan>(*descriptors_); });
}

}  // namespace muster::cpu
