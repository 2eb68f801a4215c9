#pragma once

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "muster/core/nn/model.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Shared by a sequence model and its replicas: the test's hooks, called concurrently.
struct SequenceControl {
  std::function<void(const Model*, const ForwardPass&)> onForward;
  std::function<void(const Model*)> onBackward;
  std::function<std::unique_ptr<Model>(int number, Context& context)> onReplicate;  ///< replaces the replica
  bool outputWithoutDimension = false;
  std::atomic<int> replicated{0};
  std::atomic<int> alive{0};  ///< live models, including the user's
};

struct SequenceOptions {
  std::int64_t features = 3, hidden = 5, outputs = 2;
  bool timeMajor = false;   ///< [T, N, F] instead of [N, T, F]
  bool statistics = false;  ///< add a block with the index of the last training pass's first example
  std::uint64_t seed = 1;
};

/// A recurrent network with blocks of type T, in plain loops: h(t) = tanh(W x(t) + U h(t-1)), y(t) = V h(t).
/// Input [N, T, features] or [T, N, features], output alike.
template <typename T>
class SequenceModel final : public Model {
 public:
  using Options = SequenceOptions;

  explicit SequenceModel(Options options = {}, std::shared_ptr<SequenceControl> control = nullptr,
                         Context* context = nullptr)
      : Model({}, context),
        options_(options),
        control_(control ? std::move(control) : std::make_shared<SequenceControl>()) {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "input", .shape = {options_.hidden, options_.features}});
    table->add({.name = "recurrent", .shape = {options_.hidden, options_.hidden}});
    table->add({.name = "output", .shape = {options_.outputs, options_.hidden}});
    blocks_.push_back(makeBlock("parameters", BlockKind::Parameters, table));
    blocks_.push_back(makeBlock("gradients", BlockKind::Gradients, table));
    if (options_.statistics) {
      auto one = std::make_shared<SegmentTable>();
      one->add({.name = "first", .shape = {1}});
      blocks_.push_back(makeBlock("statistics", BlockKind::Statistics, one));
    }
    const RandomStream random(options_.seed, "parameters");
    for (const auto& segment : table->segments)
      for (std::int64_t i = segment.offset; i < segment.offset + segment.shape.elements(); ++i)
        blocks_[0].values.data<T>()[i] = static_cast<T>(0.5 * random.normal(static_cast<std::uint64_t>(i)));
    ++control_->alive;
  }
  ~SequenceModel() override { --control_->alive; }

  std::unique_ptr<Model> replicate(Context& context) const override {
    const int number = control_->replicated++;
    if (control_->onReplicate) return control_->onReplicate(number, context);
    return std::make_unique<SequenceModel>(options_, control_, &context);
  }
  StepTicket gradient(const Batch&) override { throw InvalidArgument("sequence: it has no loss"); }
  std::span<StateBlock> blocks() override { return blocks_; }

  using Model::forward;
  void forward(const Tensor& x, Tensor& y, const ForwardPass& pass) override {
    if (control_->onForward) control_->onForward(this, pass);
    require(x.dtype() == kDTypeOf<T> && x.shape().rank() == 3 && x.shape()[2] == options_.features,
            "sequence: the input is {}", x.toString());
    x_ = cloneTensor(x);
    hidden_ = Tensor::zeros({steps(), examples(), options_.hidden}, kDTypeOf<T>);
    const auto [w, u, v] = views(blocks_[0]);
    y.resize(Shape({x.shape()[0], x.shape()[1], options_.outputs}), kDTypeOf<T>);
    for (std::int64_t t = 0; t < steps(); ++t)
      for (std::int64_t n = 0; n < examples(); ++n) {
        T* h = state(hidden_, t, n);
        for (std::int64_t i = 0; i < options_.hidden; ++i) {
          T sum = product(w, i, row(x_, t, n), options_.features);
          if (t > 0) sum += product(u, i, state(hidden_, t - 1, n), options_.hidden);
          h[i] = std::tanh(sum);
        }
        for (std::int64_t o = 0; o < options_.outputs; ++o)
          row(y, t, n)[o] = product(v, o, h, options_.hidden);
      }
    if (options_.statistics && pass.training)
      blocks_[2].values.template data<T>()[0] += static_cast<T>(100 + pass.firstExample);
    if (control_->outputWithoutDimension) y = y.reshape({y.elements()});
  }

  void backward(const Tensor& gradY, Tensor* gradX) override {
    if (control_->onBackward) control_->onBackward(this);
    setZero(blocks_[1].values, context());
    const auto [w, u, v] = views(blocks_[0]);
    const auto [gradW, gradU, gradV] = views(blocks_[1]);
    if (gradX) gradX->resize(x_.shape(), kDTypeOf<T>);
    std::vector<T> carried(static_cast<std::size_t>(options_.hidden)), own(carried.size());
    for (std::int64_t n = 0; n < examples(); ++n) {
      std::ranges::fill(carried, T(0));
      for (std::int64_t t = steps(); t-- > 0;) {
        const T* h = state(hidden_, t, n);
        const T* g = row(gradY, t, n);
        addOuter(gradV, g, options_.outputs, h, options_.hidden);
        for (std::int64_t i = 0; i < options_.hidden; ++i) {
          T sum = carried[i];
          for (std::int64_t o = 0; o < options_.outputs; ++o) sum += g[o] * v[o * options_.hidden + i];
          own[i] = sum * (1 - h[i] * h[i]);
        }
        addOuter(gradW, own.data(), options_.hidden, row(x_, t, n), options_.features);
        if (t > 0) addOuter(gradU, own.data(), options_.hidden, state(hidden_, t - 1, n), options_.hidden);
        transposed(u, own.data(), carried.data(), options_.hidden);
        if (gradX) transposed(w, own.data(), row(*gradX, t, n), options_.features);
      }
    }
  }

  SequenceControl& control() const { return *control_; }

 private:
  static StateBlock makeBlock(const char* name, BlockKind kind, std::shared_ptr<const SegmentTable> table) {
    const auto merge = kind == BlockKind::Gradients ? MergeRule::Keep : MergeRule::Average;
    return StateBlock::zeros(name, kind, merge, std::move(table), kDTypeOf<T>);
  }
  std::int64_t steps() const { return x_.shape()[options_.timeMajor ? 0 : 1]; }
  std::int64_t examples() const { return x_.shape()[options_.timeMajor ? 1 : 0]; }
  /// Features of example n at time t.
  T* row(const Tensor& tensor, std::int64_t t, std::int64_t n) const {
    const std::int64_t index = options_.timeMajor ? t * examples() + n : n * steps() + t;
    return tensor.data<T>() + index * tensor.shape()[2];
  }
  T* state(const Tensor& hidden, std::int64_t t, std::int64_t n) const {
    return hidden.data<T>() + (t * examples() + n) * options_.hidden;
  }
  struct Views {
    T *input, *recurrent, *output;
  };
  static Views views(const StateBlock& block) {
    return {block.segment("input").template data<T>(), block.segment("recurrent").template data<T>(),
            block.segment("output").template data<T>()};
  }
  static T product(const T* matrix, std::int64_t i, const T* x, std::int64_t n) {
    T sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += matrix[i * n + j] * x[j];
    return sum;
  }
  static void addOuter(T* matrix, const T* a, std::int64_t rows, const T* b, std::int64_t columns) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) matrix[i * columns + j] += a[i] * b[j];
  }
  /// out = matrix^T x, the matrix [hidden, n].
  void transposed(const T* matrix, const T* x, T* out, std::int64_t n) const {
    for (std::int64_t j = 0; j < n; ++j) {
      out[j] = 0;
      for (std::int64_t i = 0; i < options_.hidden; ++i) out[j] += matrix[i * n + j] * x[i];
    }
  }

  Options options_;
  std::shared_ptr<SequenceControl> control_;
  std::vector<StateBlock> blocks_;
  Tensor x_;       // of the last forward
  Tensor hidden_;  // [T, N, hidden]
};

}  // namespace muster::test
