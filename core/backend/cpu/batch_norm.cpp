#include "muster/core/ops/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "muster/core/backend/cpu/batch_norm_kernels.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

std::int64_t roundUp(std::int64_t n) {
  return (n + kLayoutBlock - 1) / kLayoutBlock * kLayoutBlock;
}

/// A tensor's memory as a sequence of equal units: `period` consecutive units cover all channels and form a
/// sample. Only the last unit may be shorter.
struct Units {
  bool runs = false;  ///< each unit is a run of one channel
  std::int64_t samples = 0, period = 1, positions = 0, lanes = 1;
  std::int64_t lastPositions = 0;

  std::int64_t count() const { return samples * period; }
  std::int64_t elements() const { return positions * lanes; }
  norm::Unit unit(std::int64_t u) const { return {u + 1 == count() ? lastPositions : positions, lanes}; }
  std::int64_t channel(std::int64_t u) const { return u % period * lanes; }
};

Units unitsOf(const Shape& input, Layout layout) {
  const std::int64_t batch = input[0], channels = input[1];
  const std::int64_t pixels = input.elements() / (batch * channels);
  const auto planes = [](bool runs, std::int64_t samples, std::int64_t period, std::int64_t positions) {
    return Units{.runs = runs,
                 .samples = samples,
                 .period = period,
                 .positions = positions,
                 .lanes = runs ? 1 : kLayoutBlock,
                 .lastPositions = positions};
  };
  const auto rows =
      [&](std::int64_t count) {  // the size of units decides how sums are grouped
        const std::int64_t some = std::clamp<std::int64_t>(4096 / channels, 1, count);
        return Units{.samples = (count + some - 1) / some,
                     .positions = some,
                     .lanes = channels,
                     .lastPositions = count - (count - 1) / some * some};
      };
  switch (layout) {
    case Layout::RowMajor:
      return pixels == 1 ? rows(batch) : planes(true, batch, channels, pixels);
    case Layout::ChannelsLast:
      return rows(batch * pixels);
    case Layout::ChannelBlocks:
      return planes(false, batch, roundUp(channels) / kLayoutBlock, pixels);
    case Layout::SampleBlocks:
      return planes(true, roundUp(batch) / kLayoutBlock, channels, pixels * kLayoutBlock);
  }
  return {};
}

const norm::Kernels& kernels(bool runs) {
  const auto& set = [&]() -> const norm::KernelSet& {
#if defined(__x86_64__)
    if (instructionSet() == InstructionSet::Avx512) return norm::avx512Kernels();
    if (instructionSet() == InstructionSet::Avx2) return norm::avx2Kernels();
#endif
    return norm::baselineKernels();
  }();
  return runs ? set.runs : set.lanes;
}

/// Adjacent samples are summed as a group, and the groups' sums are added in order. The number of groups does
/// not depend on the number of threads.
std::int64_t groupsOf(const Units& units) {
  constexpr std::int64_t kGroupElements = 65536, kMostGroups = 16;
  const std::int64_t worth = units.count() * units.elements() / kGroupElements;
  return std::min(std::clamp<std::int64_t>(worth, 1, kMostGroups), units.samples);
}

class LoopBatchNorm final : public BatchNormPlan {
 public:
  LoopBatchNorm(const BatchNormShape& shape, Layout layout, Context& context)
      : shape_(shape),
        layout_(layout),
        context_(context),
        units_(unitsOf(shape.input, layout)),
        kernels_(kernels(units_.runs)),
        relu_(shape.activation == Activation::ReLU ? 1 : 0),
        groups_(groupsOf(units_)),
        paddedChannels_(roundUp(shape.channels())),
        groupSums_(static_cast<std::size_t>(groups_ * 2 * paddedChannels_)),
        constants_(static_cast<std::size_t>(6 * paddedChannels_)),
        statistics_(static_cast<std::size_t>(3 * paddedChannels_)) {}

  Layout layout() const override { return layout_; }
  bool gradientInPlace() const override { return true; }

  void sums(const Tensor& x, Tensor& sums) override {
    expectActivation("x", x);
    expectSums(sums);
    const float* from = x.data<float>();
    sumUp(sums, [=, this](std::int64_t u, double* first, double* second) {
      kernels_.sums(units_.unit(u), from + u * units_.elements(), first, second);
    });
  }

  void normalise(const Tensor& x, const Tensor& sums, double count, const Tensor& gamma, const Tensor& beta,
                 Tensor& y) override {
    expectSums(sums);
    const double* sum = sums.data<double>();
    const double* squares = sum + channels();
    for (std::int64_t c = 0; c < channels(); ++c) {
      const double mean = sum[c] / count, variance = squares[c] / count - mean * mean;
      meanOf()[c] = mean;
      varianceOf()[c] = variance < 0 ? 0 : variance;  // keeps NaN
    }
    run(x, gamma, beta, y);
  }

  void normaliseBy(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gamma,
                   const Tensor& beta, Tensor& y) override {
    expectChannels("mean", mean);
    expectChannels("variance", variance);
    std::copy_n(mean.data<float>(), channels(), meanOf());
    std::copy_n(variance.data<float>(), channels(), varianceOf());
    run(x, gamma, beta, y);
  }

  void moveStatistics(double momentum, Tensor& mean, Tensor& variance) override {
    expectChannels("mean", mean);
    expectChannels("variance", variance);
    const auto moved = [&](float statistic, double ofBatch) {
      return (1 - momentum) * statistic + momentum * ofBatch;
    };
    const auto fits = [](double value) { return std::abs(value) <= std::numeric_limits<float>::max(); };
    for (std::int64_t c = 0; c < channels(); ++c) {
      const double m = moved(mean.data<float>()[c], meanOf()[c]);
      const double v = moved(variance.data<float>()[c], varianceOf()[c]);
      if (!fits(m) || !fits(v)) continue;  // also if NaN
      mean.data<float>()[c] = static_cast<float>(m);
      variance.data<float>()[c] = static_cast<float>(v);
    }
  }

  void gradientSums(const Tensor& x, const Tensor& gradY, Tensor& sums, Tensor& gradGamma,
                    Tensor& gradBeta) override {
    expectActivation("x", x);
    expectActivation("gradY", gradY);
    expectSums(sums);
    const float* value = x.data<float>();
    const float* from = gradY.data<float>();
    sumUp(sums, [=, this](std::int64_t u, double* first, double* second) {
      const std::int64_t at = u * units_.elements();
      kernels_.gradientSums[relu_](units_.unit(u), affine(u), value + at, from + at, first, second);
    });
    double* sum = sums.data<double>();
    double* products = sum + channels();
    for (std::int64_t c = 0; c < channels(); ++c)  // the kernels subtract the mean rounded to float32
      products[c] = (products[c] + (mean32()[c] - meanOf()[c]) * sum[c]) * inverseOf()[c];
    if (!gradGamma.defined()) return;
    expectChannels("gradGamma", gradGamma);
    expectChannels("gradBeta", gradBeta);
    for (std::int64_t c = 0; c < channels(); ++c) {
      gradGamma.data<float>()[c] = static_cast<float>(products[c]);
      gradBeta.data<float>()[c] = static_cast<float>(sum[c]);
    }
  }

  void gradient(const Tensor& x, const Tensor& gradY, const Tensor& sums, double count,
                Tensor& gradX) override {
    expectSums(sums);
    const double* sum = sums.data<double>();
    const double* products = sum + channels();
    for (std::int64_t c = 0; c < channels(); ++c) {
      const double a = scale()[c];
      const double b = -a * inverseOf()[c] * products[c] / count;
      gradA()[c] = scale()[c];
      gradB()[c] = static_cast<float>(b);
      gradC()[c] = static_cast<float>(b * (mean32()[c] - meanOf()[c]) - a * sum[c] / count);
    }
    runGradient(x, gradY, gradX);
  }

  void gradientBy(const Tensor& x, const Tensor& gradY, Tensor& gradX) override {
    std::copy_n(scale(), channels(), gradA());
    std::fill_n(gradB(), channels(), 0.0f);
    std::fill_n(gradC(), channels(), 0.0f);
    runGradient(x, gradY, gradX);
  }

 private:
  std::int64_t channels() const { return shape_.channels(); }

  /// Calls f(unit, first sums, second sums) for all units; f adds to the sums of the unit's channels.
  template <typename F>
  void sumUp(Tensor& sums, F f) {
    parallelFor(context_, groups_, 1, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t g = begin; g < end; ++g) {
        double* first = groupSums_.data() + g * 2 * paddedChannels_;
        std::fill_n(first, 2 * paddedChannels_, 0.0);
        const auto firstUnit = [&](std::int64_t group) {
          return group * units_.samples / groups_ * units_.period;
        };
        for (std::int64_t u = firstUnit(g); u < firstUnit(g + 1); ++u)
          f(u, first + units_.channel(u), first + paddedChannels_ + units_.channel(u));
      }
    });
    double* to = sums.data<double>();
    std::fill_n(to, 2 * channels(), 0.0);
    for (std::int64_t g = 0; g < groups_; ++g)
      for (std::int64_t half = 0; half < 2; ++half)
        for (std::int64_t c = 0; c < channels(); ++c)
          to[half * channels() + c] +=
              groupSums_[static_cast<std::size_t>((2 * g + half) * paddedChannels_ + c)];
  }

  /// Normalises by the running mean and variance.
  void run(const Tensor& x, const Tensor& gamma, const Tensor& beta, Tensor& y) {
    expectActivation("x", x);
    expectActivation("y", y);
    if (gamma.defined()) expectChannels("gamma", gamma);
    if (beta.defined()) expectChannels("beta", beta);
    for (std::int64_t c = 0; c < channels(); ++c) {
      inverseOf()[c] = 1 / std::sqrt(varianceOf()[c] + shape_.epsilon);
      mean32()[c] = static_cast<float>(meanOf()[c]);
      const double times = (gamma.defined() ? gamma.data<float>()[c] : 1.0) * inverseOf()[c];
      scale()[c] = static_cast<float>(times);
      // x - mean is nearly exact for a large mean; the mean's rounding error in float32 is added here.
      shift()[c] = static_cast<float>((beta.defined() ? beta.data<float>()[c] : 0.0) +
                                      times * (mean32()[c] - meanOf()[c]));
    }
    const float* from = x.data<float>();
    float* to = y.data<float>();
    forEachUnit([=, this](std::int64_t u) {
      const std::int64_t at = u * units_.elements();
      kernels_.normalise[relu_](units_.unit(u), affine(u), from + at, to + at);
    });
    zeroPaddedSamples(y);
  }

  void runGradient(const Tensor& x, const Tensor& gradY, Tensor& gradX) {
    expectActivation("x", x);
    expectActivation("gradY", gradY);
    expectActivation("gradX", gradX);
    const float* value = x.data<float>();
    const float* from = gradY.data<float>();
    float* to = gradX.data<float>();
    forEachUnit([=, this](std::int64_t u) {
      const std::int64_t at = u * units_.elements(), channel = units_.channel(u);
      const norm::GradientAffine constants{affine(u), gradA() + channel, gradB() + channel,
                                           gradC() + channel};
      kernels_.gradient[relu_](units_.unit(u), constants, value + at, from + at, to + at);
    });
    zeroPaddedSamples(gradX);
  }

  /// Visits units in reverse: the cache still holds the end of the data that was summed, and the next
  /// operation begins with the data written last.
  template <typename F>
  void forEachUnit(F f) {
    parallelFor(context_, units_.count(), 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = end; u-- > begin;) f(u);
    });
  }

  /// Constants of zero keep padded channels zero; padded samples need this call.
  void zeroPaddedSamples(Tensor& tensor) const {
    if (layout_ == Layout::SampleBlocks) zeroPadding(tensor);
  }

  norm::Affine affine(std::int64_t u) {
    const std::int64_t channel = units_.channel(u);
    return {mean32() + channel, scale() + channel, shift() + channel};
  }

  void expectActivation(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("batch_norm", name, tensor, {shape_.input, layout_});
  }
  void expectChannels(const char* name, const Tensor& tensor) const {
    muster::detail::expectTensor("batch_norm", name, tensor, {{channels()}});
  }
  void expectSums(const Tensor& tensor) const {
    muster::detail::expectTensor("batch_norm", "sums", tensor,
                                 {{2, channels()}, Layout::RowMajor, DType::Float64});
  }

  float* constant(std::int64_t which) { return constants_.data() + which * paddedChannels_; }
  float* mean32() { return constant(0); }
  float* scale() { return constant(1); }
  float* shift() { return constant(2); }
  float* gradA() { return constant(3); }
  float* gradB() { return constant(4); }
  float* gradC() { return constant(5); }
  double* meanOf() { return statistics_.data(); }
  double* varianceOf() { return statistics_.data() + paddedChannels_; }
  double* inverseOf() { return statistics_.data() + 2 * paddedChannels_; }  // 1 / sqrt(variance + epsilon)

  BatchNormShape shape_;
  Layout layout_;
  Context& context_;
  Units units_;
  const norm::Kernels& kernels_;
  const std::size_t relu_;
  std::int64_t groups_, paddedChannels_;
  std::vector<double> groupSums_;   // [group, 2, padded channels]
  std::vector<float> constants_;    // [6, padded channels], zero for padded channels
  std::vector<double> statistics_;  // [3, padded channels]
};

}  // namespace

std::unique_ptr<BatchNormPlan> planBatchNorm(const BatchNormShape& shape, Layout layout, Context& context) {
  return std::make_unique<LoopBatchNorm>(shape, layout, context);
}

}  // namespace muster::cpu
