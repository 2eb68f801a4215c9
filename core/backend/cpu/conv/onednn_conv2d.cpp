#include "muster/core/backend/cpu/conv/onednn_conv2d.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "muster/core/backend/cpu/conv/weight_blocks.h"
#include "muster/core/backend/cpu/onednn.h"
#include "muster/core/backend/cpu/onednn_pass.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/batch_norm.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;
constexpr auto kFloat = Type::f32;
constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

dnnl::memory::dims dims(const std::array<std::int64_t, 2>& sizes) {
  return {sizes[0], sizes[1]};
}

/// Returns a function from element type to an activation's descriptor in this layout.
auto inLayout(const Shape& shape, Layout layout) {
  return [=](Type type) { return activationDesc(shape, layout, type); };
}
/// As above, in the format that oneDNN prefers.
auto inAnyFormat(const Shape& shape) {
  return [=](Type type) -> Desc { return {{shape.begin(), shape.end()}, type, Tag::any}; };
}

/// With groups, the descriptor has a leading dimension for them.
Desc weightDesc(const Conv2dShape& s, Tag dense, Tag grouped, Type type = kFloat) {
  const std::int64_t in = s.inChannels / s.groups;
  if (s.groups == 1) return {{s.outChannels, in, s.kernel[0], s.kernel[1]}, type, dense};
  return {{s.groups, s.outChannels / s.groups, in, s.kernel[0], s.kernel[1]}, type, grouped};
}

Desc biasDesc(const Conv2dShape& s) {
  return {{s.outChannels}, kFloat, Tag::a};
}

bool hasName(const dnnl::primitive_desc& desc, std::string_view part) {
  return std::string_view(desc.impl_info_str()).find(part) != std::string_view::npos;
}

/// The three primitives' descriptors for activations in these formats, and weights in oneDNN's formats.
struct PrimitiveDescs {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backwardData;
  dnnl::convolution_backward_weights::primitive_desc backwardWeights;

  /// @param input, output  descriptors of the activations: Desc(Type).
  /// @param factor  type of the products' factors. Gradients of weights come without those of biases, which
  ///        oneDNN would compute whether they are wanted or not, and from a rounded gradY in bf16.
  template <typename Input, typename Output>
  PrimitiveDescs(const Conv2dShape& s, Input input, Output output, Type factor, const dnnl::engine& engine) {
    const Desc weight = weightDesc(s, Tag::any, Tag::any, factor),
               gradWeight = weightDesc(s, Tag::any, Tag::any);
    const Desc bias = biasDesc(s), noBias;
    const Desc x = input(factor), y = output(kFloat), gradX = input(kFloat), gradY = output(factor);
    const auto stride = dims(s.stride), padding = dims(s.padding);
    const dnnl::memory::dims gaps{s.dilation[0] - 1, s.dilation[1] - 1};  // oneDNN counts skipped pixels
    forward =
        describe<dnnl::convolution_forward>(engine, std::tie(), dnnl::prop_kind::forward_training, kAlgorithm,
                                            x, weight, bias, y, stride, gaps, padding, padding);
    backwardData = describe<dnnl::convolution_backward_data>(engine, std::tie(forward), kAlgorithm, gradX,
                                                             weight, gradY, stride, gaps, padding, padding);
    backwardWeights = describe<dnnl::convolution_backward_weights>(
        engine, std::tie(forward), kAlgorithm, x, gradWeight, noBias, gradY, stride, gaps, padding, padding);
    wrongData_ = hasName(backwardData, "bf16_1x1") && s.outChannels / s.groups % 2 != 0 &&
                 backwardData.diff_dst_desc() == activationDesc(s.output(), Layout::ChannelsLast, factor);
    const int vector = hasName(backwardWeights, "512") ? 16 : 8;
    const auto reads = [&, read = backwardWeights.src_desc()](Layout layout) {
      return read == activationDesc(s.input(), layout, factor);
    };
    wrongWeights_ = (hasName(backwardWeights, "1x1:avx") || hasName(backwardWeights, "1x1:sve")) &&
                    s.stride != std::array<std::int64_t, 2>{1, 1} && s.inChannels / s.groups < vector &&
                    (reads(Layout::ChannelsLast) || reads(Layout::RowMajor));
  }

  /// Whether a pass is correct and not a reference loop.
  template <typename Descriptor>
  bool fast(Descriptor PrimitiveDescs::*pass) const {
    const bool data = std::is_same_v<Descriptor, dnnl::convolution_backward_data::primitive_desc>;
    const bool weights = std::is_same_v<Descriptor, dnnl::convolution_backward_weights::primitive_desc>;
    return !hasName(this->*pass, "ref") && !(data && wrongData_) && !(weights && wrongWeights_);
  }

 private:
  /// oneDNN 2.6 computes a wrong gradient of the input of a convolution 1x1 in bf16, channels-last, with an
  /// odd number of output channels.
  bool wrongData_ = false;
  /// oneDNN reads, and may write, memory of others for the weight gradient of a strided convolution 1x1 whose
  /// input is channels-last, or row-major, which oneDNN 3 copies to channels-last, with fewer channels than a
  /// vector has elements: with AVX2 always, with AVX-512 and ARM's SVE of 512 bits if several threads compute
  /// certain shapes. Seen in 2.6 and 3.7. In bf16 this was not seen, but the kernel is related.
  bool wrongWeights_ = false;
};

/// The caller's formats.
struct Formats {
  Desc input, weight, bias, output;
};

/// The block format for our own copy of weights; nothing if oneDNN's reorder is faster.
[[maybe_unused]] std::optional<WeightBlocks> weightBlocks(const Conv2dShape& s, const Desc& inside) {
  const std::int64_t taps = s.kernel[0] * s.kernel[1];
  if (instructionSet() == InstructionSet::Baseline || s.groups > 1 || taps > WeightBlocks::kMostTaps)
    return {};
  for (const auto& [tag, block, outputsLast] :
       {std::tuple{Tag::OIhw16i16o, 16, true}, std::tuple{Tag::OIhw16o16i, 16, false},
        std::tuple{Tag::OIhw8i8o, 8, true}, std::tuple{Tag::OIhw8o8i, 8, false}})
    if (s.outChannels % block == 0 && s.inChannels % block == 0 && (outputsLast || taps >= 8) &&
        inside == weightDesc(s, tag, tag))
      return WeightBlocks{s.outChannels, s.inChannels, taps, block, outputsLast};
  return {};
}

/// @param before  the weights are an input, else a gradient.
Pass::Copy weightCopy(const Conv2dShape& shape, const Desc& inside, bool before, Context& context) {
#if defined(__x86_64__)
  const auto blocks = weightBlocks(shape, inside);
  if (!blocks) return {};
  return [blocks = *blocks, before, &context](const void* from, void* to) {
    const BlockRange all{0, blocks.in / blocks.block};
    parallelFor(context, blocks.out / blocks.block, 1, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * blocks.block * blocks.in * blocks.taps;  // in the blocked weights
      if (before)
        toBlocksAvx2(blocks, {begin, end}, all, static_cast<const float*>(from),
                     static_cast<float*>(to) + first);
      else
        fromBlocksAvx2(blocks, {begin, end}, all, static_cast<const float*>(from) + first,
                       static_cast<float*>(to));
    });
  };
#else
  static_cast<void>(shape), static_cast<void>(inside), static_cast<void>(before), static_cast<void>(context);
  return {};
#endif
}

}  // namespace

/// Decisions before primitives are created: the caller's formats and those of each pass.
struct OneDnnConv2dPlanner::Descriptors {
  Conv2dShape shape;
  Layout input, output;
  Context& context;
  Formats given;
  PrimitiveDescs native;  // in the caller's activation formats
  PrimitiveDescs free;    // in the formats that oneDNN prefers

  Descriptors(const Conv2dShape& s, Layout in, Layout out, Context& c)
      : shape(s),
        input(in),
        output(out),
        context(c),
        given{activationDesc(s.input(), in), weightDesc(s, Tag::oihw, Tag::goihw), biasDesc(s),
              activationDesc(s.output(), out)},
        native(s, inLayout(s.input(), in), inLayout(s.output(), out), factorType(c), stateOf(c).engine),
        free(s, inAnyFormat(s.input()), inAnyFormat(s.output()), factorType(c), stateOf(c).engine) {}
};

namespace {

class OneDnnConv2dPlan final : public Conv2dPlan {
 public:
  explicit OneDnnConv2dPlan(const OneDnnConv2dPlanner::Descriptors& d)
      : shape_(d.shape),
        input_(d.input),
        output_(d.output),
        bias_(Tensor::zeros({d.shape.outChannels})),
        channelSums_(muster::planBatchNorm({.input = d.shape.output()}, output_, d.context)),
        sums_(Tensor::zeros({2, d.shape.outChannels}, DType::Float64)) {
    const auto pick = [&](auto pass) {
      return !d.native.fast(pass) && d.free.fast(pass) ? d.free.*pass : d.native.*pass;
    };
    planForward(pick(&PrimitiveDescs::forward), d.given, d.context);
    planBackwardData(pick(&PrimitiveDescs::backwardData), d.given, d.context);
    planBackwardWeights(pick(&PrimitiveDescs::backwardWeights), d.given, d.context);
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
    backwardWeights_->run({x.raw(), gradY.raw(), gradWeight.raw()});
    if (!gradBias.defined()) return;
    channelSums_->sums(gradY, sums_);
    std::copy_n(sums_.data<double>(), gradBias.elements(), gradBias.data<float>());
  }

 private:
  void planForward(const dnnl::convolution_forward::primitive_desc& desc, const Formats& given,
                   Context& context) {
    name_ = fmt::format("oneDNN {}, {}", nameOf(output_), desc.impl_info_str());
    forward_ = std::make_unique<Pass>(desc, dnnl::convolution_forward(desc), stateOf(context));
    forward_->input(DNNL_ARG_SRC, given.input, desc.src_desc());
    forward_->input(DNNL_ARG_WEIGHTS, given.weight, desc.weights_desc(),
                    weightCopy(shape_, desc.weights_desc(), true, context));
    forward_->input(DNNL_ARG_BIAS, given.bias, desc.bias_desc());
    forward_->output(DNNL_ARG_DST, given.output, desc.dst_desc());
  }

  void planBackwardData(const dnnl::convolution_backward_data::primitive_desc& desc, const Formats& given,
                        Context& context) {
    backwardData_ = std::make_unique<Pass>(desc, dnnl::convolution_backward_data(desc), stateOf(context));
    backwardData_->input(DNNL_ARG_DIFF_DST, given.output, desc.diff_dst_desc());
    backwardData_->input(DNNL_ARG_WEIGHTS, given.weight, desc.weights_desc(),
                         weightCopy(shape_, desc.weights_desc(), true, context));
    backwardData_->output(DNNL_ARG_DIFF_SRC, given.input, desc.diff_src_desc());
  }

  void planBackwardWeights(const dnnl::convolution_backward_weights::primitive_desc& desc,
                           const Formats& given, Context& context) {
    backwardWeights_ =
        std::make_unique<Pass>(desc, dnnl::convolution_backward_weights(desc), stateOf(context));
    backwardWeights_->input(DNNL_ARG_SRC, given.input, desc.src_desc());
    backwardWeights_->input(DNNL_ARG_DIFF_DST, given.output, desc.diff_dst_desc());
    backwardWeights_->output(DNNL_ARG_DIFF_WEIGHTS, given.weight, desc.diff_weights_desc(),
                             weightCopy(shape_, desc.diff_weights_desc(), false, context));
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
  Tensor bias_;                                 // zeros, for calls without a bias
  std::unique_ptr<BatchNormPlan> channelSums_;  // for the gradient of the bias
  Tensor sums_;  // [2, C]: of gradY and of its squares; the latter are not used
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
  return native.fast(&PrimitiveDescs::forward) && native.fast(&PrimitiveDescs::backwardWeights) &&
         (!inputGradient || native.fast(&PrimitiveDescs::backwardData));
}

std::unique_ptr<Conv2dPlan> OneDnnConv2dPlanner::plan() {
  return planVendor("planning a convolution",
                    [&] { return std::make_unique<OneDnnConv2dPlan>(*descriptors_); });
}

}  // namespace muster::cpu
