#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/source/named_images.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/examples/convnet.h"
#include "tests/support/skip.h"

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
        "iterations: 6 batches a round; 128 examples a batch, 2 epochs\n",
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

TEST_CASE("a report shows curves, the confusion matrix and the mistakes") {
  if (!test::kWithPage) return test::skip(test::kNoPage);
  const ConvnetRun muster;
  // Hardly trained, so that there are more mistakes than the 80 that are shown.
  const auto run = muster.succeeds("train run.json --lr 1e-6 --report new/report --quiet");
  CHECK(run.err == "");
  CHECK(run.out.starts_with("test: accuracy 0."));
  CHECK_CONTAINS(muster.read("new/report/confusion.txt"), "confusion matrix");
  const auto page = muster.read("new/report/report.html");
  const auto begin = page.find("id=\"data\">") + 10;
  const auto news = json::parse(page.substr(begin, page.find("</script>", begin) - begin)).as_array();
  REQUIRE(news.size() == 2);
  for (const char* part : {"score/merged", "plan"}) CHECK_CONTAINS(json::serialize(news[0]), part);
  const auto& document = news[1].at("document");
  CHECK(document.at("confusion").at("rows").as_array().size() == 10);
  const auto& pictures = document.at("pictures").at("list").as_array();
  CHECK(pictures.size() == 80);
  CHECK(pictures[0].at("pixels").as_string().size() == 2 * 28 * 28);
}

TEST_CASE("the model has the same bits, and the report the same numbers, wherever the images are stored") {
  const ConvnetRun muster;
  const auto train = [&](const std::string& placement) {
    return muster
        .succeeds(fmt::format("train run.json --placement {0} --model {0} --json {0}.json{1}", placement,
                              test::reportIn(placement + "-report")))
        .out;
  };
  CHECK_LACKS(train("auto"), "images: ");
  CHECK(train("device").starts_with(
      "images: on the CPU, where the workers are; batches name rows of them\ndata: "));
  const auto model = muster.tensorsIn("auto");
  CHECK(model.size() > 3'000'000);
  CHECK((model == muster.tensorsIn("device")));
  const auto results = [&](const std::string& placement) {
    return json::parse(muster.read(placement + ".json"));
  };
  CHECK(results("device").at("configuration").at("training").at("placement") == "device");
  CHECK(results("auto").at("testAccuracy") == results("device").at("testAccuracy"));
  if (test::kWithPage)
    CHECK(muster.read("auto-report/confusion.txt") == muster.read("device-report/confusion.txt"));
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
