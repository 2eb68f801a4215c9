#include <doctest/doctest.h>

#include "examples/muster/compare/base_data.h"

namespace comparing {
namespace {

using Texts = std::vector<std::string>;

BaseRun base(Texts sets) {
  return {"run.json",
          R"({"format": "muster-run/1", "network": "mlp",
    "data": {"type": "mixtures", "trainExamples": 50, "testExamples": 20, "batch": 8, "validationExamples": 15}})",
          std::move(sets)};
}

TEST_CASE("the checksum of the data depends on the examples, and not on batches, order or threads") {
  const auto sum = [](Texts sets) {
    const auto run = base(std::move(sets));
    auto data = loadData(run);
    CHECK(examplesIn(data.train) == 35);
    return contentsOf(data);
  };
  const auto expected = sum({});
  for (const auto* set :
       {"data.batch=7", "data.batch=64", "data.dropLast=true", "data.shuffle=false", "training.workers=3"}) {
    CAPTURE(set);
    CHECK(sum({set}) == expected);
  }
  CHECK(sum({"data.splitSeed=9"}) != expected);  // other examples are held out
  CHECK(sum({"data.testExamples=19"}) != expected);
}

TEST_CASE("what is held out does not depend on batches") {
  for (const auto* set : {"data.batch=8", "data.batch=40", "data.dropLast=true"}) {
    CAPTURE(set);
    BaseRun run{"run.json",
                R"({"format": "muster-run/1", "network": "mlp",
      "data": {"type": "mixtures", "trainExamples": 50, "testExamples": 20, "batch": 8}})",
                {set}};
    auto data = loadData(run);
    holdOut(run, {.tune = {"learningRate=1,2"}}, data);
    CHECK(run.run().data.validationExamples == 7);
    CHECK(examplesIn(data.train) == 43);
  }
}

}  // namespace
}  // namespace comparing
