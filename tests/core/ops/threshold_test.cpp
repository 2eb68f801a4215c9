#include "muster/core/ops/threshold.h"

#include "muster/core/base/random.h"
#include "tests/core/ops/test.h"

using namespace muster;
using muster::test::thrown;

namespace {

Tensor randomVector(std::int64_t n, std::uint64_t seed) {
  const RandomStream random(seed, "vector");
  Tensor tensor = Tensor::empty({n});
  for (std::int64_t i = 0; i < n; ++i)
    tensor.data<float>()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
  return tensor;
}

/// Decodes a message, element by element.
std::vector<float> decoded(const ThresholdMessage& message) {
  Tensor out = Tensor::zeros({message.elements});
  Context cpu;
  addDecoded(message, 1, 0, message.elements, out, cpu);
  return test::floatsOf(out);
}

}  // namespace

TEST_CASE("a message equals one worked out by hand") {
  Context cpu;
  // values - base: 1, -2, 0.25, 0; with the residual 0.5, 0, 0.25, -1: 1.5, -2, 0.5, -1.
  const Tensor values = Tensor::of({2, 0, 1.25f, 3}, {4}), base = Tensor::of({1, 2, 1, 3}, {4});
  Tensor residual = Tensor::of({0.5f, 0, 0.25f, -1}, {4});
  const auto count = accumulateUpdate(values, base, 1, residual, cpu);
  CHECK(count == 3);
  ThresholdMessage message(4);
  encodeThreshold(residual, 1, count, message, cpu);
  CHECK(decoded(message) == std::vector<float>{1, -1, 0, -1});
  CHECK(test::floatsOf(residual) == std::vector{0.5f, -1.0f, 0.5f, 0.0f});
  CHECK(message.isMap);  // one word for a map, three for a list
  CHECK(message.bytes() == 16 + 4);
}

TEST_CASE("a message from another worker is checked before it is used") {
  Context cpu;
  for (const float threshold : {0.5f, 3.0f}) {  // a map, a list
    const Tensor values = randomVector(1001, 1), base = Tensor::zeros({1001});
    Tensor residual = Tensor::zeros({1001});
    ThresholdMessage sent(1001), received(1001);
    const auto count = accumulateUpdate(values, base, threshold, residual, cpu);
    encodeThreshold(residual, threshold, count, sent, cpu);
    REQUIRE(sent.isMap == (threshold < 1));
    REQUIRE(sent.nonZero >= 2);
    const auto receive = [&](std::int64_t nonZero, const std::vector<std::uint32_t>& words) {
      received.expect(nonZero, threshold);
      received.words = words;
      received.check();
    };
    receive(sent.nonZero, sent.words);
    CHECK(decoded(received) == decoded(sent));
    const auto refused = [&](std::int64_t nonZero, const std::vector<std::uint32_t>& words) {
      return thrown<InvalidArgument>([&] { receive(nonZero, words); });
    };
    CHECK(refused(1002, sent.words) == "threshold message: 1002 of 1001 elements cannot be sent");
    CHECK(refused(-1, sent.words) == "threshold message: -1 of 1001 elements cannot be sent");
    const auto notOf = fmt::format("threshold message: its words do not encode {} of 1001 elements", count);
    auto words = sent.words;
    if (sent.isMap) {
      CHECK_FALSE(refused(sent.nonZero - 1, sent.words).empty());
      words[62] |= 1u << 18;  // element 1001
      words[0] &= words[0] - 1;
      CHECK(refused(count, words) == notOf);
      words = sent.words;
      words[0] |= words[0] << 1 | words[0] >> 1;  // positive and negative
      CHECK(refused(count, words) == notOf);
    } else {
      std::swap(words[0], words[1]);
      CHECK(refused(count, words) == notOf);
      words = sent.words;
      words[static_cast<std::size_t>(count) - 1] = 2 * 1001;
      CHECK(refused(count, words) == notOf);
      words[1] = words[0];
      CHECK(refused(count, words) == notOf);
    }
  }
  ThresholdMessage message(4);
  for (const float threshold : {0.0f, -1.0f, INFINITY, NAN})
    CHECK(thrown<InvalidArgument>([&] {
            message.expect(1, threshold);
          }).starts_with("threshold message: its threshold must be above 0, got "));
  message.expect(0, 0);
  message.check();
}

TEST_CASE(
    "message and residual add up to the update at any density, and a message has at most a sixteenth of its "
    "bytes") {
  Context cpu;
  for (const std::int64_t n : {1, 15, 16, 17, 1000, 4099})
    for (const float threshold : {0.001f, 0.5f, 1.5f, 1.9f, 3.0f, 50.0f}) {
      INFO("n ", n, ", threshold ", threshold);
      const Tensor values = randomVector(n, 1), base = randomVector(n, 2), before = randomVector(n, 3);
      Tensor residual = cloneTensor(before);
      ThresholdMessage message(n);
      const auto count = accumulateUpdate(values, base, threshold, residual, cpu);
      encodeThreshold(residual, threshold, count, message, cpu);
      const auto sent = decoded(message);
      test::Array update({n}), sum({n});
      bool right = true;
      for (std::int64_t i = 0; i < n; ++i) {
        update.at(i) = double{before.data<float>()[i]} + values.data<float>()[i] - base.data<float>()[i];
        sum.at(i) = sent[i] + residual.data<float>()[i];
        right =
            right && (sent[i] == 0 || sent[i] == std::copysign(threshold, static_cast<float>(update.at(i))));
      }
      CHECK(test::maxError(sum, update) <= 1e-6);
      CHECK(right);
      CHECK(n - std::ranges::count(sent, 0) == count);
      CHECK(message.isMap == (count > (n + 15) / 16));
      CHECK(message.bytes() <= 16 + 4 * ((n + 15) / 16));
    }
}

TEST_CASE("slices together decode the same as the whole message, of which a reused one keeps nothing") {
  Context cpu;
  constexpr std::int64_t kElements = 1000;
  const Tensor zero = Tensor::zeros({kElements});
  const auto encode = [&](float threshold, ThresholdMessage& message) {
    Tensor residual = randomVector(kElements, 4);
    encodeThreshold(residual, threshold, accumulateUpdate(zero, zero, threshold, residual, cpu), message,
                    cpu);
  };
  ThresholdMessage message(kElements);
  for (const float threshold : {0.01f, 2.5f, 0.1f, 100.0f}) {  // a map, a list, a map and nothing
    ThresholdMessage fresh(kElements);
    encode(threshold, message);
    encode(threshold, fresh);
    CHECK(message.isMap == (threshold < 1));
    CHECK(decoded(message) == decoded(fresh));
    Tensor whole = Tensor::zeros({kElements}), parts = Tensor::zeros({kElements});
    addDecoded(message, 0.25f, 0, kElements, whole, cpu);
    const std::int64_t bounds[] = {0, 7, 16, 333, 999, kElements};
    for (std::size_t s = 0; s + 1 < std::size(bounds); ++s)
      addDecoded(message, 0.25f, bounds[s], bounds[s + 1], parts, cpu);
    CHECK(test::sameBits(whole, parts));
    CHECK((message.nonZero > 0) == (threshold < 100));
  }
  CHECK(message.bytes() == 16);
}

TEST_CASE("an update that is not finite is refused, and the error counts the elements") {
  Context cpu;
  const Tensor zero = Tensor::zeros({100});
  for (const float bad : {test::kNan, INFINITY, -INFINITY}) {
    Tensor values = Tensor::zeros({100}), residual = Tensor::zeros({100});
    values.data<float>()[3] = values.data<float>()[99] = bad;
    CHECK(thrown<NonFiniteScore>([&] { accumulateUpdate(values, zero, 1, residual, cpu); }) ==
          "2 of 100 elements of the update are not finite; a lower learning rate or clipping may help");
  }
}

TEST_CASE("clampElements limits each element to a range") {
  Context cpu;
  Tensor x = Tensor::of({-3, -1, 0, 0.5f, 2}, {5});
  clampElements(x, 1, cpu);
  CHECK(test::floatsOf(x) == std::vector{-1.0f, -1.0f, 0.0f, 0.5f, 1.0f});
}

TEST_CASE("threshold coding refuses invalid arguments") {
  Context cpu;
  Tensor five = Tensor::zeros({5}), six = Tensor::zeros({6});
  ThresholdMessage message(5);
  CHECK_REFUSED(
      accumulateUpdate(five, six, 1, five, cpu),
      "accumulateUpdate: base must be float32, row-major and of 5 elements on cpu, got " + six.toString());
  CHECK_REFUSED(accumulateUpdate(five, five, 0, five, cpu),
                "accumulateUpdate: the threshold must be above 0, got 0");
  CHECK_REFUSED(
      encodeThreshold(six, 1, 0, message, cpu),
      "encodeThreshold: residual must be float32, row-major and of 5 elements on cpu, got " + six.toString());
  CHECK_REFUSED(encodeThreshold(five, 1, 6, message, cpu), "encodeThreshold: 6 of 5 elements cannot be");
  CHECK_REFUSED(addDecoded(message, 1, 2, 6, five, cpu), "addDecoded: [2, 6) is not within 5 elements");
  Tensor there = Tensor::view(five.raw(), {5}, DType::Float32, Device::cuda(0));
  CHECK_REFUSED(
      clampElements(there, 1, cpu),
      "clampElements: values must be float32, row-major and of 5 elements on cpu, got " + there.toString());
}

TEST_ON_DEVICES("messages and residuals on each device have the CPU's bits") {
  const Device device = Where::device();
  Context context(device), cpu;
  for (const std::int64_t n : {1, 16, 17, 1000, 40009})
    for (const float threshold : {0.01f, 1.5f, 3.5f, 50.0f}) {
      INFO("n ", n, ", threshold ", threshold);
      const Tensor values = randomVector(n, 1), base = randomVector(n, 2);
      Tensor residual = randomVector(n, 3), residualThere = copyTo(residual, device);
      const auto count = accumulateUpdate(values, base, threshold, residual, cpu);
      CHECK(accumulateUpdate(copyTo(values, device), copyTo(base, device), threshold, residualThere,
                             context) == count);
      ThresholdMessage message(n), messageThere(n);
      encodeThreshold(residual, threshold, count, message, cpu);
      encodeThreshold(residualThere, threshold, count, messageThere, context);
      const auto sent = [](const ThresholdMessage& m) {
        return std::span(m.words).first(static_cast<std::size_t>(m.wordCount()));
      };
      CHECK(std::ranges::equal(sent(messageThere), sent(message)));
      clampElements(residual, 0.5f, cpu);
      clampElements(residualThere, 0.5f, context);
      Tensor out = randomVector(n, 4), outThere = copyTo(out, device);
      addDecoded(message, 0.25f, n / 3, n, out, cpu);
      addDecoded(messageThere, 0.25f, n / 3, n, outThere, context);
      context.synchronize();
      CHECK(test::sameBits(residualThere, residual));
      CHECK(test::sameBits(outThere, out));
    }
}
