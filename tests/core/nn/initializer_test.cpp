#include "muster/core/nn/initializer.h"

#include "muster/core/base/random.h"
#include "tests/support/json_text.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0;
};

Moments momentsOf(const Tensor& values) {
  Moments moments;
  const auto n = static_cast<double>(values.elements());
  for (const float x : values.span<float>()) moments.mean += x / n;
  for (const float x : values.span<float>()) {
    const double square = (x - moments.mean) * (x - moments.mean);
    moments.variance += square / n;
    moments.kurtosis += square * square / n;
  }
  moments.kurtosis /= moments.variance * moments.variance;
  return moments;
}

Tensor initialized(const Init& init, std::int64_t n, std::int64_t fanIn, std::int64_t fanOut,
                   std::uint64_t seed = 123, std::string_view name = "conv1.weight") {
  Tensor values = Tensor::empty({n});
  initialize(values, init, fanIn, fanOut, seed, name);
  return values;
}

bool equal(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.span<float>(), b.span<float>());
}

}  // namespace

TEST_CASE("initialisers have the documented mean and variance") {
  struct Case {
    Init init;
    double variance, kurtosis;  // kurtosis: 3 of a normal, 1.8 of a uniform distribution
  };
  const Case cases[] = {{Init::xavier(), 2.0 / (25 + 500), 3},
                        {Init::he(), 2.0 / 25, 3},
                        {Init::normal(0.01), 1e-4, 3},
                        {Init::uniform(0.3), 0.03, 1.8}};
  const std::int64_t n = 200000;
  for (const auto& c : cases) {
    CAPTURE(nameOf(c.init.kind));
    const Moments moments = momentsOf(initialized(c.init, n, 25, 500));
    // Five standard errors of each: sigma / sqrt(n), sigma^2 sqrt(2 / n), sqrt(24 / n).
    CHECK(std::abs(moments.mean) <= 5 * std::sqrt(c.variance / n));
    CHECK(std::abs(moments.variance / c.variance - 1) <= 5 * std::sqrt(2.0 / n));
    CHECK(std::abs(moments.kurtosis - c.kurtosis) <= 5 * std::sqrt(24.0 / n));
  }
}

TEST_CASE("a uniform initialiser stays within its bounds") {
  const Tensor values = initialized(Init::uniform(0.1), 100000, 1, 1);
  const auto [low, high] = std::ranges::minmax(values.span<float>());
  CHECK(low >= -0.1f);
  CHECK(low < -0.099f);
  CHECK(high < 0.1f);
  CHECK(high > 0.099f);
}

TEST_CASE("a constant initialises to its value, whatever its sign, and zero to zero") {
  for (const auto& [init, value] : {std::pair(Init::constant(1), 1.0f),
                                    {Init::constant(-0.25), -0.25f},
                                    {Init::constant(0), 0.0f},
                                    {Init::zero(), 0.0f}}) {
    Tensor values = Tensor::of({7, 8, 9}, {3});
    initialize(values, init, 1, 1, 123, "gamma");
    CHECK(equal(values, Tensor::of({value, value, value}, {3})));
  }
}

TEST_CASE("element i is number i of the random stream of the seed and the name") {
  const RandomStream random(9, "init layer.weight");
  const Tensor values = initialized(Init::normal(0.5), 100, 3, 4, 9, "layer.weight");
  for (int i = 0; i < 100; ++i) CHECK(values.data<float>()[i] == static_cast<float>(0.5 * random.normal(i)));
  CHECK(equal(values.slice(0, {40}), initialized(Init::normal(0.5), 40, 3, 4, 9, "layer.weight")));
  CHECK_FALSE(equal(values, initialized(Init::normal(0.5), 100, 3, 4, 10, "layer.weight")));
  CHECK_FALSE(equal(values, initialized(Init::normal(0.5), 100, 3, 4, 9, "other.weight")));
}

TEST_CASE("initialisers are written and read back") {
  for (const Init& init : {Init::xavier(), Init::he(), Init::normal(0.25), Init::uniform(0.5), Init::zero(),
                           Init::constant(-2)}) {
    const auto text = jsonOf(init);
    CHECK_CONTAINS(text, fmt::format("\"type\": \"{}\"", nameOf(init.kind)));
    const Init again = fromJson(text, Init::normal(7));
    CHECK(again.kind == init.kind);
    if (init.scale != 0) CHECK(again.scale == init.scale);
    CHECK(jsonOf(again) == text);
  }
  CHECK_REFUSED(
      fromJson<Init>(R"({"it": {"type": "kaiming"}})"),
      "it: initialiser: there is no type \"kaiming\"; there are xavier, he, normal, uniform, zero, constant");
}

TEST_CASE("initialisers refuse options out of range") {
  for (const Init& init : {Init::normal(-1), Init::uniform(kNan), Init::constant(1e39)})
    CHECK_THROWS_AS(init.validate(), InvalidArgument);
  CHECK_NOTHROW(Init::uniform(0).validate());
  CHECK_NOTHROW(Init::constant(-3).validate());
  CHECK_REFUSED(Init::constant(kNan).validate(),
                "initialiser constant: the value must be finite in float32, got nan");
  CHECK_THROWS_AS(initialized(Init::xavier(), 3, 0, 1), InvalidArgument);
  CHECK_THROWS_AS(initialized(Init::normal(INFINITY), 3, 1, 1), InvalidArgument);
  Tensor integers = Tensor::zeros({3}, DType::Int64);
  CHECK_THROWS_AS(initialize(integers, Init::xavier(), 1, 1, 1, "x"), InvalidArgument);
}
