#include "muster/parallel/run/detail/run_settings.h"

#include "tests/support/test.h"

namespace muster::detail {
namespace {

/// A run with these parts of its file.
RunFile runOf(const std::string& network, const std::string& training = "{}",
              const std::string& listeners = "{}", const std::string& data = "") {
  return RunFile::parse(fmt::format(
      R"({{"format": "muster-run/1", "data": {{"type": "mixtures", "seed": 5{}}}, "network": {}, "training": {},
          "listeners": {}}})",
      data, network, training, listeners));
}

const std::string kLayers = R"("layers": [{"type": "dense", "units": 8}, {"type": "output", "classes": 4}]})";
const std::string kChain = R"({"format": "muster.MultiLayerConfiguration", "version": 1, )";

TEST_CASE("runs that mean the same have the same fields, however they are written") {
  const auto same = [](const RunFile& one, const RunFile& other) {
    CHECK(fieldsOf(one) == fieldsOf(other));
    CHECK(decisiveFields(one) == decisiveFields(other));
  };
  const auto plain = runOf(kChain + R"("updater": {"type": "sgd", "learningRate": 0.5}, )" + kLayers);
  for (const auto* updater :
       {R"("updater": {"type": "sgd", "learningRate": {"type": "fixed", "value": 0.5}}, )",
        R"("updater": {"learningRate": 5e-1, "type": "sgd"}, )",
        R"("l2": 0, "seed": 0, "updater": {"type": "sgd", "learningRate": 0.5}, )"}) {
    CAPTURE(updater);
    same(plain, runOf(kChain + updater + kLayers));
  }
  same(runOf(kChain + R"("updater": "adam", )" + kLayers),
       runOf(kChain + R"("updater": {"type": "adam"}, )" + kLayers));
  same(runOf(R"("mlp")"), runOf(R"({"name": "mlp", "l2": 0})"));
  same(runOf(R"("mlp")", R"({"strategy": "diloco"})"),
       runOf(R"("mlp")", R"({"strategy": {"name": "diloco", "nesterov": true}})"));
  same(runOf(R"("mlp")"), runOf(R"("mlp")", R"({"workers": 1})", "{}", R"(, "splitSeed": 5, "batch": 128)"));
  same(runOf(R"("mlp")", "{}", R"({"reduceOnPlateau": 3})"),
       runOf(R"("mlp")", "{}", R"({"reduceOnPlateau": {"patience": 3, "monitor": "loss", "mode": "min"}})"));
}

TEST_CASE("runs that differ have other fields, and a seed is one difference") {
  const auto fields = [](const RunFile& run) {
    const auto all = decisiveFields(run);
    return std::map(all.begin(), all.end());
  };
  const auto one = fields(runOf(R"("mlp")"));
  CHECK(one.at("network.l2") == "0.0");
  CHECK(fields(runOf(R"({"name": "mlp", "l2": 0.1})")).at("network.l2") == "0.1");
  auto seeded = runOf(R"("mlp")");
  seeded.data.seed = 6;
  auto now = fields(seeded);
  CHECK(now.at("data.seed") == "6");
  now["data.seed"] = "5";
  CHECK(now == one);
}

}  // namespace
}  // namespace muster::detail
