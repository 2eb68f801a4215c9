#include "muster/core/ops/merge.h"

#include <bit>

#include "muster/core/ops/non_finite.h"
#include "tests/core/ops/test.h"

using namespace muster;

namespace {

using test::sameBits;

Tensor filled(std::int64_t n, float value) {
  return test::filled({n}, value);
}

Tensor ofDoubles(const std::vector<double>& values) {
  const Tensor tensor = Tensor::empty({std::ssize(values)}, DType::Float64);
  std::ranges::copy(values, tensor.data<double>());
  return tensor;
}

void checkAll(const std::vector<Tensor>& tensors, const Tensor& expected) {
  for (const auto& tensor : tensors) CHECK(sameBits(tensor, expected));
}

std::vector<Tensor> randomReplicas(int workers, std::int64_t n) {
  std::vector<Tensor> replicas;
  for (int w = 0; w < workers; ++w) replicas.push_back(test::randomTensor(n, fmt::format("replica {}", w)));
  return replicas;
}

std::vector<Tensor> cloneAll(const std::vector<Tensor>& replicas) {
  std::vector<Tensor> copies;
  for (const auto& replica : replicas) copies.push_back(cloneTensor(replica));
  return copies;
}

/// Numbers that show what a mean does to bits: signed zeros, subnormals, the largest, and ordinary ones.
Tensor peculiarNumbers() {
  using Limits = std::numeric_limits<float>;
  return Tensor::of({0.0f, -0.0f, Limits::denorm_min(), -3 * Limits::denorm_min(), Limits::min(),
                     Limits::max(), Limits::lowest(), 1.0f / 3, -0.1f, 1 + Limits::epsilon(), 16777215.0f,
                     1e-30f, 3.14159274f, -2.71828183f, 1e30f, 0.7f, 123456.789f, -1e-3f, 5e-41f},
                    {19});
}

}  // namespace

TEST_ON_DEVICES("weightedMean equals means known in closed form, over workers and sizes") {
  test::Place<Where> on;
  for (const int workers : {1, 2, 3, 4, 5, 6, 7, 8, 11})
    for (const std::int64_t n : {0, 1, 7, 256, 1009, 40009}) {
      INFO("workers ", workers, ", n ", n);
      // Replica w holds b + 3w with weight w + 1: the mean is b + 2 (W - 1).
      std::vector<Tensor> replicas;
      std::vector<double> weights;
      for (int w = 0; w < workers; ++w) {
        replicas.push_back(Tensor::empty({n}));
        for (std::int64_t i = 0; i < n; ++i)
          replicas[w].data<float>()[i] = static_cast<float>(i % 97 + 3 * w);
        weights.push_back(w + 1);
      }
      const auto there = copyTo(replicas, Where::device());
      Tensor mergedCopy = on(filled(n, test::kNan));
      Tensor distances = on(Tensor::zeros({workers + 1}, DType::Float64));
      weightedMean(there, weights, mergedCopy, 0, n, distances, on.context);
      on.context.synchronize();
      Tensor expected = Tensor::empty({n});
      for (std::int64_t i = 0; i < n; ++i)
        expected.data<float>()[i] = static_cast<float>(i % 97 + 2 * (workers - 1));
      CHECK(sameBits(mergedCopy, expected));
      checkAll(there, expected);
      const Tensor far = copyTo(distances, Device::cpu());
      double norm = 0;
      for (const float mean : expected.span<float>()) norm += static_cast<double>(mean) * mean;
      for (int w = 0; w < workers; ++w) {
        const double difference = 3.0 * w - 2 * (workers - 1);
        CHECK(far.data<double>()[w] == doctest::Approx(static_cast<double>(n) * difference * difference));
      }
      CHECK(far.data<double>()[workers] == doctest::Approx(norm));
      const Spread before = weightedSpread(replicas, weights, 0, n, on.context);
      const Spread told = spreadOf({far.data<double>(), static_cast<std::size_t>(workers) + 1}, weights);
      CHECK(told.distance == doctest::Approx(before.distance));
      CHECK(told.norm == doctest::Approx(before.norm));
    }
}

TEST_CASE("weightedMean is the exact mean, rounded once") {
  const std::int64_t n = 3001;
  const double weights[] = {384, 256, 100, 128, 384};
  const auto before = randomReplicas(5, n);
  auto replicas = cloneAll(before);
  Tensor mergedCopy;
  Context context;
  weightedMean(replicas, weights, mergedCopy, 0, n, context);
  long double worst = 0;  // in halves of a unit in the last place
  for (std::int64_t i = 0; i < n; ++i) {
    long double sum = 0;
    for (int w = 0; w < 5; ++w) sum += static_cast<long double>(weights[w]) * before[w].data<float>()[i];
    const long double mean = sum / 1252, half = std::ldexp(1.0L, std::ilogb(std::abs(mean)) - 24);
    worst = std::max(worst, std::abs(replicas[0].data<float>()[i] - mean) / half);
  }
  CHECK(worst <= 1 + 1e-6L);  // a little for float64
}

TEST_CASE("weightedMean rounds a tie to even") {
  const float one = 1, next = 1 + 0x1p-23f, afterNext = 1 + 0x1p-22f;
  Context context;
  Tensor mergedCopy;
  for (const double weight : {1.0, 384.0, 0.1}) {
    const Tensor replicas[] = {Tensor::of({one, next}, {2}), Tensor::of({next, afterNext}, {2})};
    const double weights[] = {weight, weight};
    weightedMean(replicas, weights, mergedCopy, 0, 2, context);
    CHECK(test::floatsOf(replicas[0]) == std::vector{one, afterNext});
  }
}

TEST_CASE("weightedMean leaves equal replicas unchanged, whatever the weights") {
  Context context;
  const double weights[] = {127, 0.1, 384, 0, 0.7, 1e-9, 3, 128};
  const Tensor numbers = peculiarNumbers();
  for (std::size_t workers = 1; workers <= std::size(weights); ++workers) {
    CAPTURE(workers);
    const auto replicas = cloneAll(std::vector(workers, numbers));
    Tensor mergedCopy = Tensor::zeros(numbers.shape());
    weightedMean(replicas, {weights, workers}, mergedCopy, 0, numbers.elements(), context);
    CHECK(sameBits(mergedCopy, numbers));
    checkAll(replicas, numbers);
  }
}

TEST_CASE("weightedMean: a replica of weight 0 receives the mean and does not contribute") {
  Context context;
  const std::int64_t n = 1009;
  const std::vector<Tensor> replicas{filled(n, test::kNan), filled(n, 1), filled(n, INFINITY), filled(n, 5),
                                     filled(n, test::kNan)};
  const double weights[] = {0, 3, 0, 1, 0};
  Tensor mergedCopy = filled(n, -1);
  weightedMean(replicas, weights, mergedCopy, 0, n, context);
  checkAll(replicas, filled(n, 2));
  CHECK(sameBits(mergedCopy, filled(n, 2)));
}

TEST_CASE("weightedMean and weightedMoments: a result that is not finite is not written, and is named") {
  const std::int64_t n = 100'000, bad = 70'002;
  const double weights[] = {1, 2};
  for (const int threads : {1, 3})
    for (const float value : {test::kNan, test::kInfinity, -test::kInfinity}) {
      Context context(Device::cpu(), {.threads = threads});
      Tensor replicas[] = {filled(n, 1), filled(n, 1)}, mergedCopy = filled(n, 3);
      replicas[1].data<float>()[bad] = value;
      const auto named = [&](auto call) {
        try {
          call();
        } catch (const NonFiniteResult& error) {
          return error.element();
        }
        return std::int64_t{-1};
      };
      CHECK(named([&] { weightedMean(replicas, weights, mergedCopy, 0, n, context); }) == bad);
      CHECK(replicas[0].data<float>()[bad] == 1);
      CHECK(named([&] { weightedMoments(replicas, weights, mergedCopy, 0, n / 2, context); }) == bad);
      for (const float x : mergedCopy.span<float>()) REQUIRE(std::isfinite(x));
      // Finite means whose variance is beyond float32.
      Tensor far[] = {filled(2, 0), filled(2, 0)};
      far[0].data<float>()[0] = 3e38f;
      Tensor none;
      CHECK(named([&] { weightedMoments(far, weights, none, 0, 1, context); }) == 1);
      CHECK(far[1].data<float>()[0] == 0);
    }
}

TEST_CASE("weightedMean: slices by several threads make up the whole, and each writes only its own") {
  const std::int64_t n = 40009;
  const double weights[] = {128, 96, 0, 128};
  const auto before = randomReplicas(4, n);
  auto whole = cloneAll(before);
  Tensor wholeShadow = Tensor::zeros({n});
  Context context;
  weightedMean(whole, weights, wholeShadow, 0, n, context);

  auto sliced = cloneAll(before);
  Tensor mergedCopy = Tensor::zeros({n});
  {
    const std::int64_t bounds[] = {0, 1, 10007, 10009, 30016, n};
    std::vector<std::jthread> threads;  // joined first
    for (int t = 0; t < 5; ++t)
      threads.emplace_back([&, t] {
        Context own;
        weightedMean(sliced, weights, mergedCopy, bounds[t], bounds[t + 1], own);
      });
  }
  for (int w = 0; w < 4; ++w) CHECK(sameBits(sliced[w], whole[w]));
  CHECK(sameBits(mergedCopy, wholeShadow));

  const auto some = cloneAll(before);
  Tensor someShadow = filled(n, 9);
  weightedMean(some, weights, someShadow, 101, 999, context);
  const auto within = [&](const Tensor& outside, const Tensor& inside) {
    const Tensor expected = cloneTensor(outside);
    Tensor part = expected.slice(101, {898});
    copy(inside.slice(101, {898}), part);
    return expected;
  };
  for (int w = 0; w < 4; ++w) CHECK(sameBits(some[w], within(before[w], whole[w])));
  CHECK(sameBits(someShadow, within(filled(n, 9), whole[0])));
}

TEST_CASE("weightedMean has the same bits for any number of a context's threads") {
  const std::int64_t n = 100003;
  const double weights[] = {3, 1, 2};
  const auto before = randomReplicas(3, n);
  Tensor expected, none;
  for (const int threads : {1, 2, 3}) {
    Context context(Device::cpu(), {.threads = threads});
    const auto replicas = cloneAll(before);
    weightedMean(replicas, weights, none, 0, n, context);
    if (threads == 1) expected = replicas[0];
    checkAll(replicas, expected);
  }
}

TEST_CASE("weightedMoments equals values worked out by hand, in float32 and in float64") {
  Context context;
  // Means first, then variances. Shares 1/4 and 3/4:
  // mean 3,   variance (1 (1 + 0) + 3 (5 + 16)) / 4 - 9 = 7
  // mean 1.5, variance (1 (2 + 9) + 3 (0 + 1)) / 4 - 2.25 = 1.25
  const double weights[] = {32, 96, 0};
  const auto check = [&](const std::vector<Tensor>& replicas, const Tensor& expected) {
    Tensor mergedCopy = Tensor::zeros({4}, expected.dtype());
    weightedMoments(replicas, weights, mergedCopy, 0, 2, context);
    checkAll(replicas, expected);
    CHECK(sameBits(mergedCopy, expected));
  };
  check({Tensor::of({0, 3, 1, 2}, {4}), Tensor::of({4, 1, 5, 0}, {4}), filled(4, test::kNan)},
        Tensor::of({3, 1.5f, 7, 1.25f}, {4}));
  check({ofDoubles({0, 3, 1, 2}), ofDoubles({4, 1, 5, 0}), ofDoubles({9, 9, 9, 9})},
        ofDoubles({3, 1.5, 7, 1.25}));
}

TEST_CASE("weightedMoments keeps a small variance about a large mean") {
  Context context;
  // Means 4096 -+ 0.25, variances 2^-20: mean 4096, variance 2^-20 + 1/16.
  const Tensor replicas[] = {Tensor::of({4095.75f, 0x1p-20f}, {2}), Tensor::of({4096.25f, 0x1p-20f}, {2})};
  const double weights[] = {5, 5};
  Tensor mergedCopy;
  weightedMoments(replicas, weights, mergedCopy, 0, 1, context);
  CHECK(test::floatsOf(replicas[1]) == std::vector{4096.0f, 0x1p-20f + 0.0625f});
}

TEST_CASE("weightedMoments accepts equal replicas, one contributor, and a slice") {
  Context context;
  const Tensor numbers = Tensor::of({0.1f, -7.3f, 1e10f, 0.0f, 0.0f, 1e-20f, 3.3f, 0.7f}, {8});
  const double weights[] = {0.1, 127, 3};
  Tensor mergedCopy = Tensor::zeros({8});
  const auto equal = cloneAll(std::vector(3, numbers));
  weightedMoments(equal, weights, mergedCopy, 0, 4, context);
  checkAll(equal, numbers);
  CHECK(sameBits(mergedCopy, numbers));

  const Tensor others[] = {filled(8, 1), cloneTensor(numbers)};
  const double single[] = {0, 2};
  Tensor untouched = filled(8, 6);
  weightedMoments(others, single, untouched, 1, 3, context);
  CHECK(sameBits(others[1], numbers));
  CHECK(sameBits(others[0], Tensor::of({1, -7.3f, 1e10f, 1, 1, 1e-20f, 3.3f, 1}, {8})));
  CHECK(sameBits(untouched, Tensor::of({6, -7.3f, 1e10f, 6, 6, 1e-20f, 3.3f, 6}, {8})));
}

TEST_CASE("float64 replicas are merged in float64, over workers and sizes") {
  Context context;
  constexpr double kFine = 0x1p-40;  // float32 would lose it next to 1
  for (const int workers : {1, 2, 3, 8})
    for (const std::int64_t n : {0, 1, 7, 8, 256, 1009}) {
      INFO("workers ", workers, ", n ", n);
      // Replica w holds b + 3w fine with weight w + 1: the mean is b + 2 (W - 1) fine.
      std::vector<Tensor> replicas;
      std::vector<double> weights;
      for (int w = 0; w < workers; ++w) {
        replicas.push_back(Tensor::empty({n}, DType::Float64));
        for (std::int64_t i = 0; i < n; ++i)
          replicas[w].data<double>()[i] = static_cast<double>(i % 97) + 3 * w * kFine;
        weights.push_back(w + 1);
      }
      Tensor mergedCopy = Tensor::zeros({n}, DType::Float64);
      weightedMean(replicas, weights, mergedCopy, 0, n, context);
      test::Array expected({n});
      for (std::int64_t i = 0; i < n; ++i)
        expected.at(i) = static_cast<double>(i % 97) + 2 * (workers - 1) * kFine;
      CHECK(test::maxError(mergedCopy, expected) <= 1e-15);
      checkAll(replicas, mergedCopy);
    }
}

TEST_CASE("float64 merges accept a slice and one contributor") {
  Context context;
  const Tensor replicas[] = {ofDoubles({1, 2, 3}), ofDoubles({0.1, 0.2, 0.3}), ofDoubles({5, 6, 7})};
  const double one[] = {0, 2, 0};
  Tensor mergedCopy = ofDoubles({0, 0, 0});
  weightedMean(replicas, one, mergedCopy, 1, 2, context);
  CHECK(sameBits(replicas[0], ofDoubles({1, 0.2, 3})));
  CHECK(sameBits(replicas[2], ofDoubles({5, 0.2, 7})));
  CHECK(sameBits(mergedCopy, ofDoubles({0, 0.2, 0})));
}

TEST_CASE("merges refuse tensors and weights without a mean, and name them") {
  Context context;
  Tensor mergedCopy;
  const Tensor two[] = {filled(4, 1), filled(4, 2)};
  const Tensor unequal[] = {filled(4, 1), filled(3, 2)};
  const Tensor counters[] = {Tensor::zeros({4}, DType::Int64), Tensor::zeros({4}, DType::Int64)};
  const double weights[] = {1, 1}, zeros[] = {0, 0}, negative[] = {2, -1}, broken[] = {1, test::kNan};
  CHECK_REFUSED(weightedMean({}, {}, mergedCopy, 0, 0, context), "weightedMean: there are no replicas");
  CHECK_REFUSED(weightedMean(two, zeros, mergedCopy, 0, 4, context),
                "weightedMean: the weights sum to 0, so there is no mean");
  for (const std::span<const double> bad : {std::span<const double>(negative), {broken}, {weights, 1}})
    CHECK_THROWS_AS(weightedMean(two, bad, mergedCopy, 0, 4, context), InvalidArgument);
  CHECK_THROWS_AS(weightedMean(unequal, weights, mergedCopy, 0, 3, context), InvalidArgument);
  CHECK_THROWS_AS(weightedMean(counters, weights, mergedCopy, 0, 4, context), InvalidArgument);
  const Tensor mixed[] = {filled(4, 1), ofDoubles({1, 2, 3, 4})};
  CHECK_REFUSED(weightedMean(mixed, weights, mergedCopy, 0, 4, context),
                "weightedMean: a replica must be float32 or float64, row-major and of the first replica's "
                "type and size (float32 [4] on cpu), got float64 [4] on cpu");
  for (const auto& [begin, end] : {std::pair(0, 5), {-1, 2}, {3, 2}})
    CHECK_THROWS_AS(weightedMean(two, weights, mergedCopy, begin, end, context), InvalidArgument);
  CHECK_THROWS_AS(weightedMoments(two, weights, mergedCopy, 0, 3, context), InvalidArgument);
  Tensor small = filled(3, 0);
  CHECK_THROWS_AS(weightedMean(two, weights, small, 0, 3, context), InvalidArgument);
  CHECK_THROWS_AS(weightedMoments({&small, 1}, {weights, 1}, mergedCopy, 0, 1, context), InvalidArgument);
}

TEST_ON_DEVICES("moments and spread on each device agree with the CPU's") {
  const Device device = Where::device();
  Context context(device), cpu;
  const std::int64_t n = 3000;
  const double weights[] = {3, 0, 2, 1};
  const auto before = randomReplicas(4, n);

  const auto onCpu = cloneAll(before);
  const auto there = copyTo(before, device);
  Tensor mergedCopy = filled(n, 0), mergedThere = copyTo(mergedCopy, device);
  weightedMoments(onCpu, weights, mergedCopy, 0, n / 2, cpu);
  weightedMoments(there, weights, mergedThere, 0, n / 2, context);
  context.synchronize();
  const Tensor merged = copyTo(mergedThere, Device::cpu());
  CHECK(test::maxDifference(merged, test::toArray(mergedCopy)) < 2e-7);
  checkAll(there, merged);

  const Spread expected = weightedSpread(before, weights, 5, n - 7, cpu);
  const Spread spread = weightedSpread(copyTo(before, device), weights, 5, n - 7, context);
  CHECK(spread.distance == doctest::Approx(expected.distance).epsilon(1e-12));
  CHECK(spread.norm == doctest::Approx(expected.norm).epsilon(1e-12));
}

namespace {

/// A merge's results: the merged copy and the distances. Checks that the replicas equal the merged copy, and
/// that the `offset` elements before each tensor in its memory, and those after it, do not change.
std::vector<Tensor> mergedAt(std::int64_t offset, const std::vector<Tensor>& replicas,
                             const std::vector<double>& weights, Context& context) {
  const std::int64_t n = replicas[0].elements(), around = n + offset + 5;
  const auto padded = [&](const Tensor& values) {
    Tensor memory = filled(around, 77);
    Tensor inner = memory.slice(offset, {n});
    copy(values, inner);
    return copyTo(memory, context.device());
  };
  std::vector<Tensor> memories, there;
  for (const auto& replica : replicas) memories.push_back(padded(replica));
  memories.push_back(padded(filled(n, test::kNan)));
  for (const auto& memory : memories) there.push_back(memory.slice(offset, {n}));
  Tensor mergedCopy = there.back();
  there.pop_back();
  const auto sums = static_cast<std::int64_t>(replicas.size()) + 1;
  Tensor distances = copyTo(Tensor::zeros({sums}, DType::Float64), context.device());
  weightedMean(there, weights, mergedCopy, 0, n, distances, context);
  context.synchronize();
  const Tensor merged = copyTo(mergedCopy, Device::cpu());
  checkAll(memories, padded(merged));
  return {merged, copyTo(distances, Device::cpu())};
}

}  // namespace

TEST_ON_DEVICES(
    "weightedMean has the same bits wherever the replicas are in memory, over workers and sizes") {
  Context context(Where::device()), cpu;
  const std::int64_t kMany = Where::device().isCpu() ? 100'003 : 1'300'007;  // more than a GPU's threads
  for (const int workers : {2, 3, 5, 8, 11})
    for (const std::int64_t n : std::vector<std::int64_t>{1, 4, 7, 1009, kMany}) {
      if (n > 1009 && workers == 11) continue;
      INFO("workers ", workers, ", n ", n);
      const auto before = randomReplicas(workers, n);
      std::vector<double> weights(before.size(), 128);
      weights[1] = 3;
      if (workers > 2) weights[2] = 0;
      const auto atOnce = mergedAt(0, before, weights, context);
      for (const std::int64_t offset : {1, 3})
        CHECK(std::ranges::equal(mergedAt(offset, before, weights, context), atOnce, sameBits));
      const auto expected = mergedAt(0, before, weights, cpu);
      CHECK(test::maxDifference(atOnce[0], test::toArray(expected[0])) < 2e-7);
      for (std::int64_t i = 0; i <= workers; ++i)
        CHECK(atOnce[1].data<double>()[i] == doctest::Approx(expected[1].data<double>()[i]).epsilon(1e-11));
    }
}

TEST_ON_DEVICES("one contributor is copied bit for bit on each device") {
  Context context(Where::device());
  Tensor source = peculiarNumbers();
  source.data<float>()[3] = std::bit_cast<float>(0x7F812345u);  // a signalling NaN with a payload
  for (std::size_t contributor = 0; contributor < 3; ++contributor) {
    std::vector<Tensor> replicas{filled(19, 1), filled(19, 2), filled(19, 3)};
    replicas[contributor] = source;
    const auto there = copyTo(replicas, Where::device());
    double weights[] = {0, 0, 0};
    weights[contributor] = 0.3;
    Tensor mergedCopy = copyTo(filled(19, 4), Where::device());
    weightedMean(there, weights, mergedCopy, 0, 19, context);
    context.synchronize();
    checkAll(there, source);
    CHECK(sameBits(mergedCopy, source));
  }
}

TEST_ON_DEVICES("a merge of a replica whose step was refused writes nothing, whatever the weights") {
  Context context(Where::device());
  for (const int workers : {1, 2, 3, 8, 11})
    for (int bad = -1; bad < workers; ++bad)
      for (const bool alone : {false, true}) {  // one contributor, which is otherwise copied
        INFO("workers ", workers, ", bad ", bad, ", alone ", alone);
        const auto replicas = randomReplicas(workers, 1030);
        std::vector<double> weights(static_cast<std::size_t>(workers), alone ? 0.0 : 1.0);
        weights.back() = 2;
        std::vector<Tensor> refused;
        for (int w = 0; w < workers; ++w)
          refused.push_back(copyTo(ofDoubles({w == bad ? 1.0 : 0.0}), Where::device()));
        for (const bool moments : {false, true}) {
          const auto there = copyTo(replicas, Where::device()), plain = copyTo(replicas, Where::device());
          Tensor mergedCopy = copyTo(filled(1030, 7), Where::device()), expected = cloneTensor(mergedCopy);
          if (moments) {
            weightedMoments(there, weights, mergedCopy, 0, 515, context, refused);
            weightedMoments(plain, weights, expected, 0, 515, context);
          } else {
            weightedMean(there, weights, mergedCopy, 0, 1030, context, refused);
            weightedMean(plain, weights, expected, 0, 1030, context);
          }
          context.synchronize();
          CHECK(sameBits(mergedCopy, bad < 0 ? expected : filled(1030, 7)));
          for (std::size_t w = 0; w < replicas.size(); ++w)
            CHECK(sameBits(there[w], bad < 0 ? plain[w] : replicas[w]));
        }
      }
}
