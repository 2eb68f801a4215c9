#include "muster/parallel/nodes/elastic/model_transfer.h"

#include "tests/parallel/nodes/on_links.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr const char* kUnfit = "nodes: the received state does not fit this model";

ToyModel toy(std::int64_t size = 3) {
  return ToyModel({.size = size, .training = {.updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9}}});
}

/// The model after a training, with outer state.
void train(ToyModel& model, float value, std::int64_t iteration) {
  model.setParameters({value, value, value});
  model.setCounters(iteration, 2);
  model.setScore(0.5);
  for (auto* block : model.state())
    if (block->kind == BlockKind::UpdaterState) block->values.data<float>()[1] = 2 * value;
  model.strategyState().push_back({"residual", Tensor::zeros({2})});
}

}  // namespace

TEST_CASE("a packed model is the whole state of a training") {
  ToyModel from = toy(), to = toy();
  train(from, 7, 11);
  unpackModel(packModel(from), to);
  CHECK(to.parameters() == std::vector<float>{7, 7, 7});
  CHECK(to.updaterState("velocity")[1] == 14);
  CHECK(to.iteration() == 11);
  CHECK(to.epoch() == 2);
  CHECK(to.updates() == from.updates());
  CHECK(to.score() == 0.5);
  REQUIRE(to.strategyState().size() == 1);
  CHECK(to.strategyState()[0].name == "residual");
  CHECK(packModel(to) == packModel(from));
}

TEST_CASE("bytes that are no state of this model are refused, and it does not change") {
  ToyModel from = toy();
  train(from, 7, 11);
  const auto whole = packModel(from);
  auto longer = whole, magic = whole;
  longer.push_back(std::byte(0));
  magic[0] ^= std::byte(1);
  ToyModel to = toy(), other = toy(40);
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{60}, whole.size() - 1}) {
    CAPTURE(length);
    CHECK_REFUSED(unpackModel(std::span(whole).first(length), to), kUnfit);
  }
  CHECK_REFUSED(unpackModel(longer, to), kUnfit);
  CHECK_REFUSED(unpackModel(magic, to), kUnfit);
  CHECK_REFUSED(unpackModel(whole, other), kUnfit);
  CHECK(to.parameters() == std::vector<float>{0, 0, 0});
  CHECK(to.iteration() == 0);
}

TEST_CASE("all nodes get the model of the one that is most advanced, of those in the training") {
  struct Case {
    std::array<std::int64_t, 3> iterations;
    std::array<bool, 3> inTraining;
    int source;
  };
  for (const auto& [iterations, inTraining, source] :
       {Case{{1, 5, 5}, {true, true, true}, 1}, Case{{9, 5, 6}, {false, true, true}, 2},
        Case{{3, 2, 1}, {false, false, false}, 0}}) {
    CAPTURE(source);
    const auto problems = onLinks(3, [&](NodeLink& link) {
      const auto n = static_cast<std::size_t>(link.node());
      ToyModel model = toy();
      train(model, static_cast<float>(n), iterations[n]);
      CHECK(shareModel(link, model, inTraining[n]) == source);
      CHECK(model.parameters().front() == static_cast<float>(source));
      CHECK(model.iteration() == iterations[static_cast<std::size_t>(source)]);
    });
    CHECK(problems == std::vector<std::string>(3));
  }
}
