#include "muster/core/ops/low_rank.h"

#include "tests/core/ops/test.h"

using namespace muster;
using muster::test::kRounding;
using muster::test::thrown;
using muster::test::valueAt;

namespace {

constexpr std::int64_t kBefore = 16;  // elements before the matrix

struct State {
  Tensor values, sent, residual, means, factors;
};

/// A base, a residual, and a move of this rank, on the device.
State stateOf(const LowRankMatrix& m, std::int64_t rankOfMove, DType type, Device device,
              std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const std::int64_t n = m.offset + m.rows * m.columns + 7;
  std::vector<double> left(static_cast<std::size_t>(m.rows * rankOfMove)),
      right(static_cast<std::size_t>(m.columns * rankOfMove));
  for (double& x : left) x = uniform(random);
  for (double& x : right) x = uniform(random);
  std::vector<Tensor> cpu;
  for (int t = 0; t < 5; ++t) cpu.push_back(Tensor::zeros({n}, type));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t e = i - m.offset;
    const double base = uniform(random), before = uniform(random);
    double move = 0;
    if (e >= 0 && e < m.rows * m.columns)
      for (std::int64_t k = 0; k < rankOfMove; ++k)
        move += left[static_cast<std::size_t>(e / m.columns * rankOfMove + k)] *
                right[static_cast<std::size_t>(e % m.columns * rankOfMove + k)];
    test::setValue(cpu[0], i, base + move - before);
    test::setValue(cpu[1], i, base);
    test::setValue(cpu[2], i, before);
  }
  for (Tensor& t : cpu) t = copyTo(t, device);
  return {cpu[0], cpu[1], cpu[2], cpu[3], cpu[4]};
}

/// One worker's two steps. @return the largest difference between what was sent and the move.
double send(const LowRankMatrix& m, State& s, Device device) {
  Context context(device);
  const Tensor x = copyTo(s.values, Device::cpu()), base = copyTo(s.sent, Device::cpu()),
               before = copyTo(s.residual, Device::cpu());
  projectDelta(m, s.values, s.sent, s.residual, s.means, s.factors, context);
  context.synchronize();
  copy(s.factors, s.means);  // the mean of one worker
  codeLowRank(m, 1, s.values, s.sent, s.residual, s.means, s.factors, context);
  context.synchronize();
  const Tensor sent = copyTo(s.sent, Device::cpu()), residual = copyTo(s.residual, Device::cpu()),
               factors = copyTo(s.factors, Device::cpu());
  const double u = x.dtype() == DType::Float64 ? 0x1p-53 : kRounding;
  double largest = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double v = valueAt(x, i) - valueAt(base, i) + valueAt(before, i);
    if (i < m.offset || i >= m.offset + m.rows * m.columns) {
      CHECK(valueAt(sent, i) == valueAt(base, i));
      CHECK(valueAt(residual, i) == valueAt(before, i));
      continue;
    }
    largest = std::max(largest, std::fabs(valueAt(sent, i) - valueAt(base, i) - v));
    // Sent part and residual add up to the move: the residual, below 32 in magnitude, is rounded once.
    CHECK(std::fabs(valueAt(sent, i) - valueAt(base, i) + valueAt(residual, i) - v) <= 32 * u);
  }
  for (std::int64_t k = 0; k < m.rank; ++k)
    for (std::int64_t j = 0; j <= k; ++j) {
      double dot = 0;
      for (std::int64_t i = 0; i < m.rows; ++i)
        dot += valueAt(factors, m.offset + i * m.rank + j) * valueAt(factors, m.offset + i * m.rank + k);
      const bool none = dot == 0;  // a move of lower rank has columns of 0
      if (j == k)
        CHECK((none || std::fabs(dot - 1) < 1e-5));
      else
        CHECK(std::fabs(dot) < 1e-3);  // cancellation: columns of P may be nearly parallel
    }
  copy(s.factors, s.means);
  return largest;
}

}  // namespace

TEST_ON_DEVICES("a move of the codec's rank is sent to rounding, and a move of higher rank in part") {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{12, 40}, {300, 30}, {25, 700}})
      for (const std::int64_t rank : {1, 3}) {
        INFO("rows ", rows, ", rank ", rank);
        const LowRankMatrix m{.offset = kBefore, .rows = rows, .columns = columns, .rank = rank};
        auto low = stateOf(m, rank, type, Where::device(), 3);
        // Elements up to 3 + 1 + 1; nearly parallel columns of P lose up to three digits.
        const double tolerance = (type == DType::Float64 ? 0x1p-53 : kRounding) * 5 * 1000;
        CHECK(send(m, low, Where::device()) <= tolerance);
        auto high = stateOf(m, rank + 4, type, Where::device(), 4);
        CHECK(send(m, high, Where::device()) > 0.1);
      }
}

TEST_CASE("low-rank coding refuses tensors and ranks that do not fit") {
  Context context;
  const Tensor x = Tensor::zeros({100}), other = Tensor::zeros({50});
  const auto refusal = [&](const LowRankMatrix& m, const Tensor& last) {
    return thrown<InvalidArgument>([&] { projectDelta(m, x, x, x, x, last, context); });
  };
  CHECK(refusal({.rows = 10, .columns = 10, .rank = 0}, x) ==
        "low rank: rank must be between 1 and 32, got 0");
  CHECK(refusal({.offset = 1, .rows = 10, .columns = 10}, x) ==
        "low rank: [10, 10] at element 1 of 100 has no room for factors of rank 1");
  CHECK(refusal({.rows = 10, .columns = 10, .rank = 6}, x) ==
        "low rank: [10, 10] at element 0 of 100 has no room for factors of rank 6");
  CHECK(refusal({.rows = 10, .columns = 10}, other).starts_with("low rank: expected float32 or float64"));
  const Tensor onGpu = Tensor::view(x.raw(), {100}, DType::Float32, Device::cuda(0));
  CHECK(thrown<DeviceUnavailable>([&] {
          decodeLowRank({.rows = 10, .columns = 10}, onGpu, x, x, context);
        }) == "decodeLowRank: runs on the CPU only, got " + onGpu.toString());
}
