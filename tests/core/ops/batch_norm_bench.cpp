// Batch normalisation with a ReLU at the shapes of ResNet-18 on 28x28, on one thread: ours and oneDNN's, in
// blocks of sixteen channels and the other layouts.
#include "muster/core/ops/batch_norm.h"

#include <benchmark/benchmark.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "tests/bench/tensors.h"

using namespace muster;
using bench::randomTensor;

namespace {

const Shape kShapes[] = {{64, 64, 28, 28}, {64, 128, 14, 14}, {64, 256, 7, 7}, {64, 512, 4, 4}};

struct Tensors {
  Tensors(const Shape& shape, Layout layout, Context& context)
      : x(bench::inLayout(randomTensor(shape, "x"), layout, context)),
        gradY(bench::inLayout(randomTensor(shape, "gradY"), layout, context)),
        y(Tensor::zeros(shape, DType::Float32, Device::cpu(), layout)),
        gradX(Tensor::zeros(shape, DType::Float32, Device::cpu(), layout)),
        gamma(randomTensor({shape[1]}, "gamma")),
        beta(randomTensor({shape[1]}, "beta")),
        gradGamma(Tensor::zeros({shape[1]})),
        gradBeta(Tensor::zeros({shape[1]})) {}
  Tensor x, gradY, y, gradX, gamma, beta, gradGamma, gradBeta;
};

class Ours {
 public:
  Ours(const Shape& shape, Layout layout, Context& context)
      : plan_(planBatchNorm({.input = shape, .activation = Activation::ReLU}, layout, context)),
        sums_(Tensor::zeros({2, shape[1]}, DType::Float64)),
        count_(static_cast<double>(shape.elements() / shape[1])) {}
  void forward(Tensors& t) {
    plan_->sums(t.x, sums_);
    plan_->normalise(t.x, sums_, count_, t.gamma, t.beta, t.y);
  }
  void backward(Tensors& t) {
    plan_->gradientSums(t.x, t.gradY, sums_, t.gradGamma, t.gradBeta);
    plan_->gradient(t.x, t.gradY, sums_, count_, t.gradX);
  }

 private:
  std::unique_ptr<BatchNormPlan> plan_;
  Tensor sums_;
  double count_;
};

class OneDnn {
 public:
  OneDnn(const Shape& shape, Layout layout) {
    using namespace dnnl;
    const auto tag = layout == Layout::ChannelBlocks  ? memory::format_tag::nChw16c
                     : layout == Layout::ChannelsLast ? memory::format_tag::nhwc
                                                      : memory::format_tag::nchw;
    const memory::dims dims{shape[0], shape[1], shape[2], shape[3]};
    const memory::desc data(dims, memory::data_type::f32, tag);
    const auto flags =
        normalization_flags::use_scale | normalization_flags::use_shift | normalization_flags::fuse_norm_relu;
#if DNNL_VERSION_MAJOR >= 3
    const batch_normalization_forward::primitive_desc forward(engine_, prop_kind::forward_training, data,
                                                              data, 1e-5f, flags);
    const batch_normalization_backward::primitive_desc backward(engine_, prop_kind::backward, data, data,
                                                                data, 1e-5f, flags, forward);
#else
    const batch_normalization_forward::primitive_desc forward(
        {prop_kind::forward_training, data, 1e-5f, flags}, engine_);
    const batch_normalization_backward::primitive_desc backward(
        {prop_kind::backward, data, data, 1e-5f, flags}, engine_, forward);
#endif
    forward_ = batch_normalization_forward(forward);
    backward_ = batch_normalization_backward(backward);
    data_ = data;
    channels_ = memory::desc({shape[1]}, memory::data_type::f32, memory::format_tag::a);
    mean_ = memory(forward.mean_desc(), engine_);
    variance_ = memory(forward.variance_desc(), engine_);
    workspace_ = memory(forward.workspace_desc(), engine_);
  }
  void forward(Tensors& t) {
    forward_.execute(stream_, {{DNNL_ARG_SRC, of(data_, t.x)},
                               {DNNL_ARG_DST, of(data_, t.y)},
                               {DNNL_ARG_SCALE, of(channels_, t.gamma)},
                               {DNNL_ARG_SHIFT, of(channels_, t.beta)},
                               {DNNL_ARG_MEAN, mean_},
                               {DNNL_ARG_VARIANCE, variance_},
                               {DNNL_ARG_WORKSPACE, workspace_}});
  }
  void backward(Tensors& t) {
    backward_.execute(stream_, {{DNNL_ARG_SRC, of(data_, t.x)},
                                {DNNL_ARG_DIFF_DST, of(data_, t.gradY)},
                                {DNNL_ARG_DIFF_SRC, of(data_, t.gradX)},
                                {DNNL_ARG_SCALE, of(channels_, t.gamma)},
                                {DNNL_ARG_SHIFT, of(channels_, t.beta)},
                                {DNNL_ARG_DIFF_SCALE, of(channels_, t.gradGamma)},
                                {DNNL_ARG_DIFF_SHIFT, of(channels_, t.gradBeta)},
                                {DNNL_ARG_MEAN, mean_},
                                {DNNL_ARG_VARIANCE, variance_},
                                {DNNL_ARG_WORKSPACE, workspace_}});
  }

 private:
  dnnl::memory of(const dnnl::memory::desc& desc, const Tensor& tensor) {
    return {desc, engine_, tensor.raw()};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::batch_normalization_forward forward_;
  dnnl::batch_normalization_backward backward_;
  dnnl::memory::desc data_, channels_;
  dnnl::memory mean_, variance_, workspace_;
};

/// Two tensors in one layout. Allows a few differences: if a value is nearly 0, only one of the two ReLUs may
/// pass the gradient.
bool close(const Tensor& a, const Tensor& b) {
  return bench::differences(a, b, 1e-4f) <= a.elements() / 100000;
}

/// Checks results before timing: a fast wrong result is not reported.
bool agree(const Shape& shape, Layout layout, Context& context) {
  Tensors ours(shape, layout, context), theirs(shape, layout, context);
  Ours a(shape, layout, context);
  OneDnn b(shape, layout);
  a.forward(ours);
  a.backward(ours);
  b.forward(theirs);
  b.backward(theirs);
  return close(ours.y, theirs.y) && close(ours.gradX, theirs.gradX);
}

enum class Whose { Ours, OneDnns };
enum class Pass { Forward, Backward };

void batchNorm(benchmark::State& state, const Shape& shape, Layout layout, Whose whose, Pass pass) {
  Context context;
  const ContextScope scope(context);
  if (!agree(shape, layout, context)) return state.SkipWithError("the results differ");
  Tensors t(shape, layout, context);
  Ours ours(shape, layout, context);
  OneDnn theirs(shape, layout);
  ours.forward(t);
  theirs.forward(t);
  for (auto step : state) {
    if (whose == Whose::Ours)
      pass == Pass::Forward ? ours.forward(t) : ours.backward(t);
    else
      pass == Pass::Forward ? theirs.forward(t) : theirs.backward(t);
    benchmark::ClobberMemory();
  }
  // The passes over memory that every implementation needs.
  const double passes = pass == Pass::Forward ? 3 : 5;
  state.counters["bytes/s"] =
      benchmark::Counter(passes * static_cast<double>(t.x.bytes()),
                         benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1024);
}

const bool kRegistered = [] {
  for (const auto layout : {Layout::ChannelBlocks, Layout::ChannelsLast, Layout::RowMajor})
    for (const Shape& shape : kShapes)
      for (const auto pass : {Pass::Forward, Pass::Backward})
        for (const auto whose : {Whose::Ours, Whose::OneDnns})
          benchmark::RegisterBenchmark(("batch_norm " + shape.toString() + "/" + std::string(nameOf(layout)) +
                                        (pass == Pass::Forward ? "/forward/" : "/backward/") +
                                        (whose == Whose::Ours ? "ours" : "oneDNN's"))
                                           .c_str(),
                                       batchNorm, shape, layout, whose, pass);
  return true;
}();

}  // namespace
