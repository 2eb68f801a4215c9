#include "muster/core/backend/cpu/onednn_conv2d.h"

#include <array>
#include <string_view>

#include "muster/core/backend/cpu/onednn.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

dnnl::memory::dims dims(const std::array<std::int64_t, 2>& sizes) {
  return {sizes[0], sizes[1]};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

/// Canonical weights; where there are groups, with a dimension for them in front.
Desc weightDesc(const Conv2dShape& s) {
  const std::int64_t in = s.inChannels / s.groups;
  if (s.groups == 1) return {{s.outChannels, in, s.kernel[0], s.kernel[1]}, kFloat, Tag::oihw};
  return {{s.groups, s.outChannels / s.groups, in, s.kernel[0], s.kernel[1]}, kFloat, Tag::goihw};
}

/// The formats that a convolution's descriptor asks for.
struct Formats {
  Desc input, weight, bias, output;
};

/// The three primitives' descriptors for one set of formats.
struct PrimitiveDescs {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backwardData;
  dnnl::convolution_backward_weights::primitive_desc backwardWeights;

  PrimitiveDescs(const Conv2dShape& s, const Formats& f, const dnnl::engine& engine) {
    const auto stride = dims(s.stride), padding = dims(s.padding);
    const dnnl::memory::dims gaps{s.dilation[0] - 1, s.dilation[1] - 1};  // oneDNN counts what is skipped
    forward = {{dnnl::prop_kind::forward_training, kAlgorithm, f.input, f.weight, f.bias, f.output, stride,
                gaps, padding, padding},
               attributes(),
               engine};
    backwardData = {{kAlgorithm, f.input, f.weight, f.output, stride, gaps, padding, padding},
                    attributes(),
                    engine,
                    forward};
    backwardWeights = {{kAlgorithm, f.input, f.weight, f.bias, f.output, stride, gaps, padding, padding},
                       attributes(),
                       engine,
                       forward};
  }
};

bool isFast(const dnnl::primitive_desc& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos;
}

/// One primitive between the caller's formats and those it works in. Where the two differ, a copy is
/// reordered before or after.
class Pass {
 public:
  Pass(const dnnl::primitive_desc& desc, const dnnl::primitive& primitive, const State& state)
      : state_(state), main_(primitive, state), scratch_(desc.scratchpad_desc().get_size(), Device::cpu()) {
    main_.add(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch_.data());
  }

  void input(int argument, const Desc& given, const Desc& wanted) {
    slots_.push_back(given == wanted ? Slot{&main_, main_.add(argument, wanted)}
                                     : reorder(before_, argument, given, wanted, true));
  }
  void output(int argument, const Desc& given, const Desc& made) {
    slots_.push_back(given == made ? Slot{&main_, main_.add(argument, made)}
                                   : reorder(after_, argument, given, made, false));
  }

  /// `data` in the order in which inputs and outputs were added.
  void run(std::initializer_list<void*> data) {
    auto slot = slots_.begin();
    for (void* pointer : data) {
      slot->execution->bind(slot->index, pointer);
      ++slot;
    }
    for (auto& execution : before_) execution->run();
    main_.run();
    for (auto& execution : after_) execution->run();
  }

 private:
  struct Slot {  // where the caller's pointer goes
    Execution* execution;
    std::size_t index;
  };
  using Executions = std::vector<std::unique_ptr<Execution>>;

  Slot reorder(Executions& list, int argument, const Desc& given, const Desc& inside, bool before) {
    void* copy = copies_.emplace_back(inside.get_size(), Device::cpu()).data();
    main_.add(argument, inside, copy);
    const Desc& from = before ? given : inside;
    const Desc& to = before ? inside : given;
    const dnnl::reorder::primitive_desc desc(state_.engine, from, state_.engine, to, attributes());
    Execution& execution = *list.emplace_back(std::make_unique<Execution>(dnnl::reorder(desc), state_));
    void* scratch = copies_.emplace_back(desc.scratchpad_desc().get_size(), Device::cpu()).data();
    execution.add(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch);
    const std::size_t source = execution.add(DNNL_ARG_FROM, from, before ? nullptr : copy);
    const std::size_t target = execution.add(DNNL_ARG_TO, to, before ? copy : nullptr);
    return {&execution, before ? source : target};
  }

  const State& state_;
  Execution main_;
  Buffer scratch_;
  std::vector<Buffer> copies_;
  Executions before_, after_;
  std::vector<Slot> slots_;  // [argument of run]
};

}  // namespace

/// What is decided before primitives are made: the formats of the caller, and of each pass.
struct OneDnnConv2dPlanner::Descriptors {
  Conv2dShape shape;
  Layout input, output;
  Context& context;
  Formats given;
  PrimitiveDescs native;  // in the caller's activation formats
  PrimitiveDescs free;    // in whatever oneDNN likes best

  Descriptors(const Conv2dShape& s, Layout in, Layout out, Context& c)
      : shape(s),
        input(in),
        output(out),
        context(c),
        given{activationDesc(s.input(), in),
              weightDesc(s),
              {{s.outChannels}, kFloat, Tag::a},
              activationDesc(s.output(), out)},
        native(s, {given.input, any(given.weight), given.bias, given.output}, stateOf(c).engine),
        free(s, {any(given.input), any(given.weight), given.bias, any(given.output)}, stateOf(c).engine) {}

  static Desc any(const Desc& desc) { return {desc.dims(), kFloat, Tag::any}; }
};

namespace {

class OneDnnConv2dPlan final : public Conv2dPlan {
 public:
  OneDnnConv2dPlan(const Conv2dShape& shape, Layout input, Layout output, const Formats& given,
                   const PrimitiveDescs& native, const PrimitiveDescs& free, Context& context)
      : shape_(shape),
        input_(input),
        output_(output),
        bias_(Tensor::zeros({shape.outChannels})),
        unwanted_(Tensor::zeros({shape.outChannels})) {
    const State& state = stateOf(context);
    const auto pick = [](const auto& mine, const auto& other) {
      return !isFast(mine) && isFast(other) ? other : mine;
    };
    planForward(pick(native.forward, free.forward), given, state);
    planBackwardData(pick(native.backwardData, free.backwardData), given, state);
    planBackwardWeights(pick(native.backwardWeights, free.backwardWeights), given, state);
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
                   const State& state) {
    name_ = fmt::format("oneDNN {}, {}", nameOf(output_), desc.impl_info_str());
    forward_ = std::make_unique<Pass>(desc, dnnl::convolution_forward(desc), state);
    forward_->input(DNNL_ARG_SRC, given.input, desc.src_desc());
    forward_->input(DNNL_ARG_WEIGHTS, given.weight, desc.weights_desc());
    forward_->input(DNNL_ARG_BIAS, given.bias, desc.bias_desc());
    forward_->output(DNNL_ARG_DST, given.output, desc.dst_desc());
  }

  void planBackwardData(const dnnl::convolution_backward_data::primitive_desc& desc, const Formats& given,
                        const State& state) {
    backwardData_ = std::make_unique<Pass>(desc, dnnl::convolution_backward_data(desc), state);
    backwardData_->input(DNNL_ARG_DIFF_DST, given.output, desc.diff_dst_desc());
    backwardData_->input(DNNL_ARG_WEIGHTS, given.weight, desc.weights_desc());
    backwardData_->output(DNNL_ARG_DIFF_SRC, given.input, desc.diff_src_desc());
  }

  void planBackwardWeights(const dnnl::convolution_backward_weights::primitive_desc& desc,
                           const Formats& given, const State& state) {
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
  Tensor bias_;      // zeros, for calls without one
  Tensor unwanted_;  // takes a bias gradient nobody asked for
  std::unique_ptr<Pass> forward_, backwardData_, backwardWeights_;
};

}  // namespace

OneDnnConv2dPlanner::OneDnnConv2dPlanner(const Conv2dShape& shape, Layout input, Layout output,
                                         Context& context) {
  descriptors_ = planVendor("planning a convolution",
                            [&] { return std::make_unique<Descriptors>(shape, input, output, context); });
}

OneDnnConv2dPlanner::~OneDnnConv2dPlanner() = default;

bool OneDnnConv2dPlanner::fast(bool inputGradient) const {
  const auto& native = descriptors_->native;
  return isFast(native.forward) && isFast(native.backwardWeights) &&
         (!inputGradient || isFast(native.backwardData));
}

std::unique_ptr<Conv2dPlan> OneDnnConv2dPlanner::plan() {
  const auto& d = *descriptors_;
  return planVendor("planning a convolution", [&] {
    return std::make_unique<OneDnnConv2dPlan>(d.shape, d.input, d.output, d.given, d.native, d.free,
                                              d.context);
  });
}

}  // namespace muster::cpu
