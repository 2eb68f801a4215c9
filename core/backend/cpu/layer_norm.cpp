#include "muster/core/ops/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

/// A row's statistics: the normalised value is (x - mean) * inverse + rest, where `rest` corrects the mean's
/// rounding to float32.
struct RowMoments {
  float mean, inverse, rest;
};

constexpr int kLanes = 16;

[[gnu::always_inline]] inline double sumOfLanes(double* lanes) {
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

/// The sum of f(i) over n elements, in float64 and sixteen lanes for any vector width.
template <typename F>
[[gnu::always_inline]] inline double laneSumOf(std::int64_t n, F f) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += f(i);
  return sumOfLanes(lanes);
}

struct Features {
  std::int64_t count;
  double epsilon;
  const float *gamma, *beta;
};

[[gnu::always_inline]] inline void forwardRows(Features f, const float* x, float* y, RowMoments* moments,
                                               std::int64_t rows) {
  const auto count = static_cast<double>(f.count);
  for (std::int64_t r = 0; r < rows; ++r, x += f.count, y += f.count) {
    const double mean = laneSumOf(
                            f.count, [=
    ](std::int64_t i) __attribute__((always_inline)) { return static_cast<double>(x[i]); }) /
                        count;
    const double variance = laneSumOf(
                                f.count,
                                [=](std::int64_t i) __attribute__((always_inline)) {
                                  const double centred = x[i] - mean;
                                  return centred * centred;
                                }) /
                            count;
    const double inverse = 1 / std::sqrt(variance + f.epsilon);
    const auto mean32 = static_cast<float>(mean);
    const RowMoments m{mean32, static_cast<float>(inverse), static_cast<float>((mean32 - mean) * inverse)};
    moments[r] = m;
    MUSTER_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < f.count; ++i)
      y[i] = ((x[i] - m.mean) * m.inverse + m.rest) * f.gamma[i] + f.beta[i];
  }
}

[[gnu::always_inline]] inline void gradientRows(Features f, const float* x, const float* gradY, float* gradX,
                                                const RowMoments* moments, std::int64_t rows) {
  const auto count = static_cast<double>(f.count);
  for (std::int64_t r = 0; r < rows; ++r, x += f.count, gradY += f.count, gradX += f.count) {
    const RowMoments m = moments[r];
    const auto normalised = [=](std::int64_t i) __attribute__((always_inline)) {
      return (x[i] - m.mean) * m.inverse + m.rest;
    };
    double sums[kLanes] = {}, products[kLanes] = {};
    const auto add = [&](int lane, std::int64_t i) __attribute__((always_inline)) {
      const double g = gradY[i] * f.gamma[i];
      sums[lane] += g;
      products[lane] += g * normalised(i);
    };
    std::int64_t done = 0;
    for (; done + kLanes <= f.count; done += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) add(lane, done + lane);
    for (int lane = 0; done < f.count; ++done, ++lane) add(lane, done);
    const auto mean = static_cast<float>(sumOfLanes(sums) / count),
               along = static_cast<float>(sumOfLanes(products) / count);
    MUSTER_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < f.count; ++i)
      gradX[i] = m.inverse * (gradY[i] * f.gamma[i] - mean - normalised(i) * along);
  }
}

/// Adds `rows` rows, one after another, to the float64 gradients of gamma and beta.
template <int rows>
[[gnu::always_inline]] inline void addParameterGradients(std::int64_t count, const float* x,
                                                         const float* gradY, const RowMoments* moments,
                                                         double* gradGamma, double* gradBeta) {
  RowMoments m[rows];
  for (int r = 0; r < rows; ++r) m[r] = moments[r];
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) {
    double gamma = gradGamma[i], beta = gradBeta[i];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const float normalised = (x[r * count + i] - m[r].mean) * m[r].inverse + m[r].rest;
      const double g = gradY[r * count + i];
      gamma += g * normalised;
      beta += g;
    }
    gradGamma[i] = gamma;
    gradBeta[i] = beta;
  }
}

[[gnu::always_inline]] inline void parameterGradients(std::int64_t count, const float* x, const float* gradY,
                                                      const RowMoments* moments, double* gradGamma,
                                                      double* gradBeta, std::int64_t rows) {
  constexpr int kTogether = 4;  // rows for which the sums stay in registers
  std::int64_t r = 0;
  for (; r + kTogether <= rows; r += kTogether)
    addParameterGradients<kTogether>(count, x + r * count, gradY + r * count, moments + r, gradGamma,
                                     gradBeta);
  for (; r < rows; ++r)
    addParameterGradients<1>(count, x + r * count, gradY + r * count, moments + r, gradGamma, gradBeta);
}

/// Adjacent rows are summed as a group, and the groups' sums are added in order. The number of groups does
/// not depend on the number of threads.
std::int64_t groupsOf(const LayerNormShape& shape) {
  return std::min(std::clamp<std::int64_t>(shape.rows * shape.features / 65536, 1, 16), shape.rows);
}

class LoopLayerNorm final : public LayerNormPlan {
 public:
  LoopLayerNorm(const LayerNormShape& shape, Context& context)
      : shape_(shape),
        context_(context),
        groups_(groupsOf(shape)),
        ones_(static_cast<std::size_t>(shape.features), 1.0f),
        zeros_(static_cast<std::size_t>(shape.features), 0.0f),
        moments_(static_cast<std::size_t>(shape.rows)),
        groupSums_(static_cast<std::size_t>(groups_ * 2 * shape.features)) {}

  bool gradientInPlace() const override { return true; }

  void forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, Tensor& y) override {
    expect("x", x, shape_.input());
    expect("y", y, shape_.input());
    const Features features = featuresOf(gamma, beta);
    const float* from = x.data<float>();
    float* to = y.data<float>();
    parallelFor(context_, shape_.rows, kRows, [=, this](std::int64_t begin, std::int64_t end) {
      dispatch<forwardRows>(features, from + begin * features.count, to + begin * features.count,
                            moments_.data() + begin, end - begin);
    });
  }

  void backward(const Tensor& x, const Tensor& gamma, const Tensor& gradY, Tensor& gradX, Tensor& gradGamma,
                Tensor& gradBeta) override {
    expect("x", x, shape_.input());
    expect("gradY", gradY, shape_.input());
    if (gradGamma.defined()) takeParameterGradients(x, gradY, gradGamma, gradBeta);
    if (gradX.defined()) takeGradient(x, gamma, gradY, gradX);  // last: it may overwrite gradY
  }

 private:
  static constexpr std::int64_t kRows = 16;  // minimum rows per thread

  void takeGradient(const Tensor& x, const Tensor& gamma, const Tensor& gradY, Tensor& gradX) {
    expect("gradX", gradX, shape_.input());
    const Features features = featuresOf(gamma, {});
    const float* value = x.data<float>();
    const float* from = gradY.data<float>();
    float* to = gradX.data<float>();
    parallelFor(context_, shape_.rows, kRows, [=, this](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * features.count;
      dispatch<gradientRows>(features, value + at, from + at, to + at,
                             static_cast<const RowMoments*>(moments_.data() + begin), end - begin);
    });
  }

  void takeParameterGradients(const Tensor& x, const Tensor& gradY, Tensor& gradGamma, Tensor& gradBeta) {
    const std::int64_t n = shape_.features;
    expect("gradGamma", gradGamma, {n});
    expect("gradBeta", gradBeta, {n});
    const float* value = x.data<float>();
    const float* from = gradY.data<float>();
    parallelFor(context_, groups_, 1, [=, this](std::int64_t firstGroup, std::int64_t lastGroup) {
      for (std::int64_t g = firstGroup; g < lastGroup; ++g) {
        const std::int64_t begin = g * shape_.rows / groups_, end = (g + 1) * shape_.rows / groups_;
        double* sums = groupSums_.data() + g * 2 * n;
        std::fill_n(sums, 2 * n, 0.0);
        dispatch<parameterGradients>(n, value + begin * n, from + begin * n,
                                     static_cast<const RowMoments*>(moments_.data() + begin), sums, sums + n,
                                     end - begin);
      }
    });
    for (std::int64_t i = 0; i < n; ++i) {
      double gamma = 0, beta = 0;
      for (std::int64_t g = 0; g < groups_; ++g) {
        gamma += groupSums_[static_cast<std::size_t>(g * 2 * n + i)];
        beta += groupSums_[static_cast<std::size_t>(g * 2 * n + n + i)];
      }
      gradGamma.data<float>()[i] = static_cast<float>(gamma);
      gradBeta.data<float>()[i] = static_cast<float>(beta);
    }
  }

  Features featuresOf(const Tensor& gamma, const Tensor& beta) const {
    if (gamma.defined()) expect("gamma", gamma, {shape_.features});
    if (beta.defined()) expect("beta", beta, {shape_.features});
    return {shape_.features, shape_.epsilon, gamma.defined() ? gamma.data<float>() : ones_.data(),
            beta.defined() ? beta.data<float>() : zeros_.data()};
  }
  static void expect(const char* name, const Tensor& tensor, const Shape& shape) {
    muster::detail::expectTensor("layer_norm", name, tensor, {shape});
  }

  LayerNormShape shape_;
  Context& context_;
  std::int64_t groups_;
  std::vector<float> ones_, zeros_;  // used if there is no gamma or beta
  std::vector<RowMoments> moments_;  // [row]
  std::vector<double> groupSums_;    // [group, 2, features]
};

}  // namespace

std::unique_ptr<LayerNormPlan> planLayerNorm(const LayerNormShape& shape, Context& context) {
  return std::make_unique<LoopLayerNorm>(shape, context);
}

}  // namespace muster::cpu
