#include <boost/json.hpp>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/source/named_images.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/examples/convnet.h"

namespace muster {
namespace {

using test::ConvnetRun;
namespace json = boost::json;

TEST_CASE("muster train trains, logs its progress, saves the model and writes the results") {
  const test::Sandbox muster;
  const auto run =
      muster.succeeds("train " MUSTER_MNIST_RUN
                      " --data generated --examples 600 --device cpu --pin-threads false --epochs 2 "
                      "--test-every 1 --json run.json");
  CAPTURE(run.err);
  CHECK(
      run.out.starts_with("data: generated digits (not MNIST), 600 examples to train with and 600 to test "
                          "with, from this program\n"));
  for (const char* part :
       {"431080",  // parameters
        "\nplan: 2 workers on cpu (1 thread each, not pinned, each at least 5.2 MB), averaging every 3 "
        "iterations: 6 batches per round; 128 examples per batch, 2 epochs\n",
        "\ntest: accuracy 0.",
        "\nsaved: mnist-convnet.safetensors; loaded again, it gives the same outputs, bit for bit\n"
        "json: run.json\n"})
    CHECK_CONTAINS(run.out, part);
  for (const char* part : {"epoch 1/2: score ", "epoch 2/2: score "}) CHECK_CONTAINS(run.err, part);

  const auto results = json::parse(muster.read("run.json")).as_object();
  CHECK(results.at("configuration").at("data").at("type") == "generated");
  CHECK(results.at("configuration").at("network").at("name") == "convnet");
  GeneratedDigitsIterator digits(100, 600, kDrawingSeed, false);
  const auto evaluation =
      MultiLayerNetwork::load(muster.directory / "mnist-convnet.safetensors")->evaluate(digits);
  CHECK(results.at("testAccuracy") == evaluation.accuracy());
  CHECK(results.at("f1") == evaluation.f1());
  const auto& tests = results.at("testAccuracyByEpoch").as_array();
  REQUIRE(tests.size() == 2);
  CHECK(tests[1].at("testAccuracy") == evaluation.accuracy());
  CHECK(muster.directory.names() == std::set<std::string>{"mnist-convnet.safetensors", "run.json"});
}

TEST_CASE("the model has the same bits, and the report the same numbers, wherever the images are stored") {
  const ConvnetRun muster;
  const auto train = [&](const std::string& placement, const std::string& options) {
    return muster.succeeds(fmt::format("train run.json --placement {0} --model {0} --json {0}.json{1}{2}",
                                       placement, test::reportIn("new/" + placement), options));
  };
  const auto quiet = train("auto", " --quiet");
  CHECK(quiet.err == "");
  CHECK(quiet.out.starts_with("test: accuracy 0."));
  CHECK(train("device", "")
            .out.starts_with("images: on the CPU, where the workers are; batches name rows of them\ndata: "));
  const auto model = muster.tensorsIn("auto");
  CHECK(model.size() > 3'000'000);
  CHECK((model == muster.tensorsIn("device")));
  const auto results = [&](const std::string& placement) {
    return json::parse(muster.read(placement + ".json"));
  };
  CHECK(results("device").at("configuration").at("training").at("placement") == "device");
  CHECK(results("auto").at("testAccuracy") == results("device").at("testAccuracy"));
  if (!test::kWithPage) return;
  CHECK(muster.read("new/auto/confusion.txt") == muster.read("new/device/confusion.txt"));
  for (const char* part : {R"("name":"score/merged","points":[[)", R"("plan":"2 workers on cpu)",
                           R"("confusion": {"classes": [)", R"("pictures": {"title": )"})
    CHECK_CONTAINS(muster.read("new/auto/report.html"), part);
}

TEST_CASE("--strategy help prints a table of all strategies, and --help explains every option") {
  const ConvnetRun muster;
  const auto strategies = muster.succeeds("train run.json --strategy help");
  CHECK(strategies.err == "");
  CHECK(strategies.out == describeStrategies(2));

  const auto help = muster.succeeds("train run.json --help");
  CHECK(help.err == "");
  std::istringstream options(
      "workers averaging-frequency strategy strategy-options batch epochs updater lr momentum "
      "l2 seed threads-per-worker pin-threads math-mode prefetch device data data-dir examples "
      "model resume checkpoint-dir checkpoint-every checkpoint-iterations checkpoint-minutes "
      "keep test-every test-iterations report tensorboard page curves store min-nodes json "
      "quiet help");
  for (std::string option; options >> option;) CHECK_CONTAINS(help.out, "\n  --" + option + " ");
}

}  // namespace
}  // namespace muster
