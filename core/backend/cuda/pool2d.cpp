#include "muster/core/ops/pool2d.h"

#include "muster/core/backend/cuda/kernels/pool2d.h"

#include "muster/core/backend/cuda/state.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cuda {
namespace {

PoolCall callFor(const Pool2dShape& s, Layout layout) {
  const Shape out = s.output();
  const bool last = layout == Layout::ChannelsLast;
  return {.planes = last ? s.batch : s.batch * s.channels,
          .height = s.height,
          .width = s.width,
          .outHeight = out[2],
          .outWidth = out[3],
          .lanes = last ? s.channels : 1,
          .kernel = {s.kernel[0], s.kernel[1]},
          .stride = {s.stride[0], s.stride[1]},
          .padding = {s.padding[0], s.padding[1]}};
}

class KernelPool2d : public Pool2dPlan {
 public:
  KernelPool2d(const Pool2dShape& shape, Layout layout, Context& context)
      : shape_(shape), layout_(layout), context_(context), call_(callFor(shape, layout)) {}
  Layout layout() const final { return layout_; }

 protected:
  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("pool2d", name, tensor, {shape, layout_, DType::Float32, context_.device()});
  }
  const Pool2dShape& shape() const { return shape_; }
  const PoolCall& call() const { return call_; }
  cudaStream_t stream() const { return stateOf(context_).stream(); }

 private:
  Pool2dShape shape_;
  Layout layout_;
  Context& context_;
  PoolCall call_;
};

template <typename Index>
class MaxPool final : public KernelPool2d {
 public:
  MaxPool(const Pool2dShape& shape, Layout layout, Context& context)
      : KernelPool2d(shape, layout, context),
        winners_(static_cast<std::size_t>(shape.output().elements()) * sizeof(Index), context.device()) {}

  void forward(const Tensor& x, Tensor& y) override {
    expect("x", x, shape().input());
    expect("y", y, shape().output());
    MUSTER_CUDA_CHECK(launchMaxPool(call(), x.data<float>(), y.data<float>(), winners(), stream()));
  }
  void backward(const Tensor& gradY, Tensor& gradX) override {
    expect("gradY", gradY, shape().output());
    expect("gradX", gradX, shape().input());
    MUSTER_CUDA_CHECK(
        launchMaxPoolBackward<Index>(call(), gradY.data<float>(), winners(), gradX.data<float>(), stream()));
  }

 private:
  Index* winners() const { return reinterpret_cast<Index*>(winners_.data()); }
  Buffer winners_;
};

class AveragePool final : public KernelPool2d {
 public:
  using KernelPool2d::KernelPool2d;
  void forward(const Tensor& x, Tensor& y) override {
    expect("x", x, shape().input());
    expect("y", y, shape().output());
    MUSTER_CUDA_CHECK(launchAveragePool(call(), x.data<float>(), y.data<float>(), stream()));
  }
  void backward(const Tensor& gradY, Tensor& gradX) override {
    expect("gradY", gradY, shape().output());
    expect("gradX", gradX, shape().input());
    MUSTER_CUDA_CHECK(launchAveragePoolBackward(call(), gradY.data<float>(), gradX.data<float>(), stream()));
  }
};

}  // namespace

std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context) {
  require(layout == Layout::RowMajor || layout == Layout::ChannelsLast,
          "pool2d: on a GPU activations are row-major or channels-last, not {}", nameOf(layout));
  if (shape.kind == PoolKind::Average) return std::make_unique<AveragePool>(shape, layout, context);
  if (shape.kernel[0] * shape.kernel[1] <= 256)
    return std::make_unique<MaxPool<std::uint8_t>>(shape, layout, context);
  return std::make_unique<MaxPool<std::int32_t>>(shape, layout, context);
}

}  // namespace muster::cuda
