#include "muster/core/ops/delta_coding.h"

#include <numeric>

#include "tests/core/ops/test.h"

using namespace muster;
using muster::test::thrown;

namespace {

using Values = std::vector<double>;

Tensor tensorOf(const Values& values, DType type = DType::Float32, Device device = Device::cpu()) {
  Tensor t = Tensor::empty({static_cast<std::int64_t>(values.size())}, type);
  for (std::size_t i = 0; i < values.size(); ++i) test::setValue(t, static_cast<std::int64_t>(i), values[i]);
  return copyTo(t, device);
}

Values valuesOf(const Tensor& tensor) {
  return test::toArray(tensor).values;
}

struct Coded {
  Values sent, residual;
};

Coded code(const DeltaCoding& coding, const Values& values, const Values& base, const Values& residual,
           Device device, DType type = DType::Float32, std::int64_t begin = 0, std::int64_t end = -1) {
  Context context(device);
  const Tensor x = tensorOf(values, type, device), sent = tensorOf(base, type, device),
               left = tensorOf(residual, type, device);
  codeDelta(coding, x, sent, left, begin, end < 0 ? x.elements() : end, context);
  context.synchronize();
  CHECK(valuesOf(x) == valuesOf(tensorOf(values, type)));
  return {valuesOf(sent), valuesOf(left)};
}

Values zeros(std::size_t n) {
  return Values(n);
}

/// Multiples of 2^-10 in [-4, 4): differences and sums are exact in float32.
Values exact(std::uint64_t seed, std::size_t n) {
  std::mt19937_64 random(seed);
  Values values(n);
  for (double& v : values) v = static_cast<double>(static_cast<std::int64_t>(random() % 8192) - 4096) / 1024;
  return values;
}

const std::initializer_list<DeltaCoding> kAll = {{.codec = DeltaCodec::Bf16},
                                                 {.codec = DeltaCodec::Int8},
                                                 {.codec = DeltaCodec::E3M0},
                                                 {.codec = DeltaCodec::TopK, .largest = 40}};

}  // namespace

TEST_ON_DEVICES("what was sent and the residual add up to the move exactly") {
  for (const DType type : {DType::Float32, DType::Float64})
    for (const auto& coding : kAll)
      for (const std::size_t n : {40u, 255u, 256u, 257u, 5000u}) {
        INFO("coding.codec ", static_cast<int>(coding.codec), ", n ", n);
        const Values x = exact(1, n), base = exact(2, n), before = exact(3, n);
        const auto [sent, residual] = code(coding, x, base, before, Where::device(), type);
        double worst = 0;
        for (std::size_t i = 0; i < n; ++i)
          worst = std::max(worst, std::fabs(sent[i] - base[i] + residual[i] - (x[i] - base[i] + before[i])));
        // float32 rounds the sum of base and a scaled level, but the residual includes this error, up to one
        // rounding.
        CHECK(worst <= (coding.codec == DeltaCodec::Int8 ? 0x1p-24 : 0));
      }
}

TEST_ON_DEVICES("moves that a codec can represent are sent unchanged") {
  const std::size_t n = 1000;
  std::mt19937_64 random(7);
  Values base(n), whole(n), powers(n);
  for (std::size_t i = 0; i < n; ++i) {
    base[i] = static_cast<double>(random() % 1000);
    whole[i] = base[i] + static_cast<double>(random() % 255) - 127;
    powers[i] = base[i] + (random() % 2 ? 1 : -1) * std::ldexp(1, static_cast<int>(random() % 7));
    if (i % 256 == 0) {  // each chunk's largest
      whole[i] = base[i] - 127;
      powers[i] = base[i] + 64;
    }
  }
  const auto check = [&](const DeltaCoding& coding, const Values& x) {
    CAPTURE(static_cast<int>(coding.codec));
    const auto [sent, residual] = code(coding, x, base, zeros(n), Where::device());
    CHECK(sent == x);
    CHECK(residual == zeros(n));
  };
  check({.codec = DeltaCodec::Bf16}, whole);
  check({.codec = DeltaCodec::Int8}, whole);
  check({.codec = DeltaCodec::E3M0}, powers);
  check({.codec = DeltaCodec::TopK, .largest = static_cast<std::int64_t>(n)}, exact(4, n));
}

TEST_ON_DEVICES("each codec sends the nearest value that it can represent") {
  const std::size_t n = 256;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 20; ++round) {
    Values x(n);
    for (double& v : x)
      v = static_cast<double>(static_cast<float>(normal(random) * std::exp(2 * normal(random))));
    double largest = 0;
    for (const double v : x) largest = std::max(largest, std::fabs(v));
    const auto sent = [&](DeltaCodec codec) {
      return code({.codec = codec}, x, zeros(n), zeros(n), Where::device()).sent;
    };
    const auto int8 = sent(DeltaCodec::Int8), e3m0 = sent(DeltaCodec::E3M0), bf16 = sent(DeltaCodec::Bf16);
    const double top = std::exp2(std::round(std::log2(largest) + 0.5 - std::log2(1.5)));
    for (std::size_t i = 0; i < n; ++i) {
      CAPTURE(x[i]);
      // Half a level, and a rounding of the scale and of its product.
      CHECK(std::fabs(int8[i] - x[i]) <= largest / 254 * (1 + 0x1p-14));
      CHECK(std::fabs(bf16[i] - x[i]) <= std::fabs(x[i]) * 0x1p-8);
      double nearest = std::fabs(x[i]);
      for (int e = 0; e < 7; ++e)
        nearest = std::min(nearest, std::fabs(std::ldexp(top, -e) - std::fabs(x[i])));
      CHECK(std::fabs(e3m0[i] - x[i]) == nearest);
    }
  }
}

TEST_ON_DEVICES("TopK sends the largest elements, and the first among equal ones") {
  for (const std::size_t n : {1u, 5u, 1024u, 3000u})
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, n / 3, n - 1, n}) {
      INFO("n ", n, ", k ", k);
      Values x = exact(n, n), base = exact(n + 1, n);
      for (std::size_t i = 0; i < n; ++i) x[i] = base[i] + std::trunc(x[i]);  // many are equal
      std::vector<std::size_t> order(n);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order, std::greater{},
                               [&](std::size_t i) { return std::fabs(x[i] - base[i]); });
      Values expected = base;
      for (std::size_t i = 0; i < k; ++i) expected[order[i]] = x[order[i]];
      const DeltaCoding coding{.codec = DeltaCodec::TopK, .largest = static_cast<std::int64_t>(k)};
      CHECK(code(coding, x, base, zeros(n), Where::device()).sent == expected);
    }
}

TEST_ON_DEVICES("only the given range is written, and the residual keeps the configured part") {
  const std::size_t n = 900;
  const Values x = exact(5, n), base = exact(6, n), before = exact(7, n);
  for (auto coding : kAll) {
    const auto keeping = [&](double part) {
      coding.remember = part;
      return code(coding, x, base, before, Where::device(), DType::Float32, 100, 700);
    };
    const Coded whole = keeping(1), half = keeping(0.5), none = keeping(0);
    for (std::size_t i = 0; i < n; ++i) {
      const bool inside = i >= 100 && i < 700;
      CHECK(whole.sent[i] == half.sent[i]);
      if (!inside) CHECK(whole.sent[i] == base[i]);
      CHECK(half.residual[i] == (inside ? whole.residual[i] / 2 : before[i]));
      CHECK(none.residual[i] == (inside ? 0 : before[i]));
    }
  }
}

TEST_CASE("codedBytes counts the bytes sent, and invalid arguments are refused") {
  CHECK(codedBytes({.codec = DeltaCodec::Bf16}, 1000) == 2000);
  CHECK(codedBytes({.codec = DeltaCodec::Int8}, 1000) == 1000 + 4 * 4);
  CHECK(codedBytes({.codec = DeltaCodec::E3M0}, 1000) == 500 + 4);
  CHECK(codedBytes({.codec = DeltaCodec::TopK, .largest = 10}, 1000) == 80);
  Context context;
  const Tensor x = Tensor::zeros({4}), other = Tensor::zeros({5});
  CHECK(thrown<InvalidArgument>([&] {
          codeDelta({}, x, x, other, 0, 4, context);
        }).starts_with("codeDelta: expected float32 or float64, row-major, with 4 elements on cpu"));
  CHECK_REFUSED(codeDelta({}, x, x, x, 0, 5, context), "codeDelta: [0, 5) is not within 4 elements");
  CHECK_REFUSED(codeDelta({.codec = DeltaCodec::TopK, .largest = 5}, x, x, x, 0, 4, context),
                "codeDelta: of 4 elements 5 cannot be the largest");
  const Tensor onGpu = Tensor::view(x.raw(), {4}, DType::Float32, Device::cuda(0));
  std::vector<std::byte> packed(8);
  CHECK(thrown<DeviceUnavailable>([&] { packDelta({}, onGpu, x, x, 0, 4, packed, context); }) ==
        "packDelta: runs on the CPU only, got " + onGpu.toString());
  CHECK(thrown<DeviceUnavailable>([&] { unpackDelta({}, packed, onGpu, 0, 4, context); }) ==
        "unpackDelta: runs on the CPU only, got " + onGpu.toString());
}

TEST_CASE("packing and unpacking gives the bits of codeDelta, and the message has the promised size") {
  Context context;
  for (const DType type : {DType::Float32, DType::Float64})
    for (const DeltaCoding& coding : kAll)
      for (const std::int64_t n : {40, 255, 256, 257, 5000}) {
        INFO("coding.codec ", static_cast<int>(coding.codec), ", n ", n);
        for (const bool all : {false, true}) {
          DeltaCoding own = coding;
          own.remember = 0.5;
          if (all && coding.codec == DeltaCodec::TopK) own.largest = n;
          std::mt19937_64 random(static_cast<std::uint64_t>(n));
          std::normal_distribution<double> normal;
          Values x, base, before;
          for (std::int64_t i = 0; i < n + 7; ++i) {
            // Moves of many magnitudes, a chunk without moves, and moves of -0.
            const double far = std::ldexp(normal(random), static_cast<int>(random() % 40) - 30);
            base.push_back(i % 11 == 0 ? -0.0 : normal(random));
            x.push_back(i > 300 && i < 700 ? base.back() : base.back() + far);
            before.push_back(i > 300 && i < 700 ? -0.0 : far / 8);
          }
          const Values expected = code(own, x, base, before, Device::cpu(), type, 3, n + 3).sent;
          const Tensor sent = tensorOf(base, type), left = tensorOf(before, type),
                       there = tensorOf(base, type);
          std::vector<std::byte> packed(static_cast<std::size_t>(codedBytes(own, n, type)));
          packDelta(own, tensorOf(x, type), sent, left, 3, n + 3, packed, context);
          unpackDelta(own, packed, there, 3, n + 3, context);
          CHECK(test::sameBits(sent, there));
          CHECK(test::sameBits(sent, tensorOf(expected, type)));
          CHECK(valuesOf(left) == code(own, x, base, before, Device::cpu(), type, 3, n + 3).residual);
        }
      }
  CHECK(codedBytes({.codec = DeltaCodec::TopK, .largest = 1000}, 1000) == 4000);  // all, without positions
  CHECK(codedBytes({.codec = DeltaCodec::TopK, .largest = 10}, 1000, DType::Float64) == 120);
}

TEST_CASE("moves that are not finite arrive as such, and invalid messages are refused") {
  Context context;
  for (const double bad : {test::kInfinity, test::kNan})
    for (const DeltaCoding& coding : kAll) {
      if (coding.codec == DeltaCodec::E3M0 && bad == test::kInfinity)
        continue;  // of which it takes the largest power
      CAPTURE(static_cast<int>(coding.codec));
      Values x(300, 1);
      x[7] = bad;
      const Tensor sent = Tensor::zeros({300}), left = Tensor::zeros({300}), there = Tensor::zeros({300});
      std::vector<std::byte> packed(static_cast<std::size_t>(codedBytes(coding, 300)));
      packDelta(coding, tensorOf(x), sent, left, 0, 300, packed, context);
      unpackDelta(coding, packed, there, 0, 300, context);
      CHECK(!std::isfinite(valuesOf(sent)[7]));
      CHECK(!std::isfinite(valuesOf(there)[7]));
    }
  const DeltaCoding largest{.codec = DeltaCodec::TopK, .largest = 1};
  const Tensor there = Tensor::zeros({4});
  std::vector<std::byte> packed(8);
  packed[4] = std::byte{4};
  CHECK_REFUSED(unpackDelta(largest, packed, there, 0, 4, context),
                "unpackDelta: position 4 is not within 4 elements");
  packed.resize(7);
  CHECK_REFUSED(unpackDelta(largest, packed, there, 0, 4, context),
                "packDelta: 4 elements do not take 7 bytes");
}
