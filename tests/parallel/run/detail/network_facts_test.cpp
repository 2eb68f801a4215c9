#include "muster/parallel/run/detail/network_facts.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;
using test::integers;

namespace {

/// What a network is told of these batches. @param names  of the classes.
NetworkFacts factsWith(std::vector<Batch> batches, std::vector<std::string> names = {}) {
  LoadedData data;
  data.train = std::make_unique<test::ListIterator>(std::move(batches));
  data.description.classes = std::move(names);
  return factsOf("a", data);
}

}  // namespace

TEST_CASE("labels are classes or numbers, by their type, their values and the names of classes") {
  const Tensor two = Tensor::zeros({2, 3, 4, 5});
  const auto reads = [&](const std::vector<Tensor>& labels, const std::vector<std::string>& names,
                         std::int64_t classes, std::int64_t numbers) {
    std::vector<Batch> batches;
    for (const auto& some : labels) batches.push_back(test::batchOf(two, some));
    const auto facts = factsWith(batches, names);
    CHECK(facts.classes == classes);
    CHECK(facts.numbers == numbers);
    CHECK(facts.input == Shape{3, 4, 5});
    CHECK(facts.symbols == 0);
  };
  reads({Tensor::of({0, 1, 0, 1, 0, 0}, {2, 3})}, {}, 3, 0);    // one-hot
  reads({Tensor::of({0, 1, 0, 1, 1, 0}, {2, 3})}, {}, 0, 3);    // two ones
  reads({Tensor::of({0, 1, 0, 0, 0, 0.5}, {2, 3})}, {}, 0, 3);  // no one
  reads({Tensor::of({0, 1, 0, 1, 0, 0}, {2, 3}), Tensor::of({0, 1, 0, 1, 1, 0}, {2, 3})}, {}, 0, 3);
  reads({Tensor::of({0, 1}, {2, 1})}, {}, 0, 1);
  reads({Tensor::of({0, 1}, {2})}, {}, 0, 1);
  reads({Tensor::of({0, 1}, {2, 1})}, {"no", "yes"}, 2, 0);
  reads({integers({0, 1}), integers({6, 2})}, {}, 7, 0);
  reads({integers({0, 1})}, {"a", "b", "c"}, 3, 0);
  // A text has as many symbols as its largest index says, of features and labels.
  const auto text = [](std::vector<std::int64_t> features, std::vector<std::int64_t> labels) {
    return test::batchOf(integers(features, {1, 2}), integers(labels, {1, 2}));
  };
  CHECK(factsWith({text({0, 1}, {1, 2}), text({5, 1}, {1, 0})}).vocabulary() == 6);
  CHECK(factsWith({text({0, 1}, {1, 8}), text({5, 1}, {1, 0})}).vocabulary() == 9);
}

TEST_CASE(
    "labels of weight 0 need no class, and those that are only 0 and 1 are told where they are numbers") {
  const auto dataWith = [](const std::vector<float>& labels, std::int64_t columns) {
    const auto rows = std::ssize(labels) / columns;
    auto batch = test::batchOf(Tensor::zeros({rows, 4}), Tensor::of(labels, {rows, columns}));
    Tensor weights = Tensor::of(std::vector<float>(labels.size(), 1), {std::ssize(labels)}).rows(0, rows);
    weights.at(rows - 1) = 0;  // of the last example
    batch.masks.push_back({"labels", weights});
    LoadedData data;
    data.train = std::make_unique<test::ListIterator>(std::vector{std::move(batch)});
    return data;
  };
  auto oneHot = dataWith({0, 1, 1, 0, 9, 9}, 2);
  CHECK(factsOf("a", oneHot).classes == 2);
  const auto remark = [&](const std::vector<float>& labels, std::int64_t columns, Loss loss) {
    auto data = dataWith(labels, columns);
    MultiLayerNetwork network({.inputShape = {4}, .layers = {Output{.units = columns, .loss = loss}}});
    network.init();
    return numbersRemark(network, data);
  };
  const std::string begin = "network: all labels are 0 or 1, and are predicted as numbers; to predict ";
  CHECK(remark({0, 1, 1, 1, 5, 5}, 2, Loss::MeanSquaredError)
            .starts_with(begin + "2 labels of 0 or 1, give network.layers with an output of \"units\": 2, "));
  CHECK(remark({0, 1, 5}, 1, Loss::MeanSquaredError).starts_with(begin + "1 label of"));
  CHECK(remark({0, 1, 1, 1, 5, 5}, 2, Loss::BinaryCrossEntropy) == "");
  CHECK(remark({0, 0.5, 1, 1, 1, 1}, 2, Loss::MeanSquaredError) == "");
}

TEST_CASE("data that are no pictures of classes, or no text, are refused by the network's name") {
  CHECK(NetworkFacts{.name = {}, .input = {3, 8, 8}, .classes = 2}.image() == Shape{3, 8, 8});
  CHECK_REFUSED((NetworkFacts{.name = "convnet", .input = {2}, .classes = 2}.image()),
                "network: convnet is for pictures [C, H, W] of classes, and an example is [2]");
  CHECK_REFUSED((NetworkFacts{.name = "convnet", .input = {3, 8, 8}, .numbers = 1}.image()),
                "network: convnet is for pictures [C, H, W] of classes, and an example is [3, 8, 8], with "
                "numbers to predict");
  CHECK_REFUSED((NetworkFacts{.name = "gpt", .input = {2}, .classes = 2}.vocabulary()),
                "network: gpt is for texts, as indices [T] with a label at each step, and an example is [2]");
}
