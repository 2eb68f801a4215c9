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

using test::contains;
using test::Convnet;
using test::readFile;
namespace json = boost::json;

void checkTraining(const json::object& results) {
  CHECK(results.at("interrupted") == false);
  CHECK(results.at("epochsFinished") == 2);
  CHECK(results.at("firstEpoch") == 1);
  CHECK(results.at("scoreByEpoch").as_array().size() == 2);
  const double seconds = results.at("seconds").as_double();
  CHECK(seconds > 0);
  CHECK(results.at("secondsInAll").as_double() > seconds);
  CHECK(results.at("samplesPerSecond").as_double() == doctest::Approx(2 * 600 / seconds));
  double shares = 0;
  for (const char* share : {"computeShare", "mergeShare", "dataWaitShare", "barrierWaitShare"}) {
    CHECK(results.at(share).as_double() >= 0);
    shares += results.at(share).as_double();
  }
  CHECK(shares == doctest::Approx(1));
  CHECK(results.at("peakMemoryBytes").as_int64() > 10'000'000);
  const auto& workers = results.at("workers").as_array();
  REQUIRE(workers.size() == 2);
  // Five batches per epoch, the last of 88: the first worker gets 128 + 128 + 88 examples.
  CHECK(workers[0].at("batches").as_int64() == 6);
  CHECK(workers[0].at("examples").as_int64() == 688);
  CHECK(workers[1].at("examples").as_int64() == 512);
}

TEST_CASE("muster train trains, logs its progress, saves the model and writes the results") {
  const Convnet convnet;
  const auto run =
      test::succeeded(convnet.runSmall({"--epochs", "2", "--test-every", "1", "--json", "run.json"}));
  CAPTURE(run.err);
  CHECK(
      run.out.starts_with("data: generated digits (not MNIST), 600 examples to train with and 600 to test "
                          "with, from this program\n"));
  CHECK(contains(run.out, "431080"));  // parameters
  CHECK(contains(run.out,
                 "\nplan: 2 workers on cpu (1 thread each, not pinned, each at least 5.2 MB), averaging "
                 "every 3 iterations: 6 "
                 "batches a round; 128 examples a batch, 2 epochs\n"));
  CHECK(contains(run.out, "\ntest: accuracy 0."));
  CHECK(contains(run.out,
                 "\nsaved: mnist-convnet.safetensors; loaded again, it gives the same outputs, bit for bit\n"
                 "json: run.json\n"));
  CHECK(contains(run.err, "epoch 1/2: score "));
  CHECK(contains(run.err, "epoch 2/2: score "));

  const auto results = json::parse(readFile(convnet.directory / "run.json")).as_object();
  const auto& configuration = results.at("configuration").as_object();
  CHECK(configuration.at("format") == "muster-run/1");
  CHECK(configuration.at("data").at("type") == "generated");
  CHECK(configuration.at("training").at("workers") == 2);
  CHECK(configuration.at("training").at("strategy").at("every") == 3);
  CHECK(configuration.at("network").at("name") == "convnet");
  checkTraining(results);

  GeneratedDigitsIterator digits(100, 600, kDrawingSeed, false);
  const auto saved = MultiLayerNetwork::load(convnet.directory / "mnist-convnet.safetensors");
  const auto evaluation = saved->evaluate(digits);
  CHECK(results.at("testAccuracy").as_double() == evaluation.accuracy());
  CHECK(results.at("f1").as_double() == evaluation.f1());
  const auto& tests = results.at("testAccuracyByEpoch").as_array();
  REQUIRE(tests.size() == 2);
  CHECK(tests[1].at("testAccuracy").as_double() == evaluation.accuracy());
  CHECK(convnet.directory.names() == std::set<std::string>{"mnist-convnet.safetensors", "run.json"});
}

TEST_CASE("a report shows curves, the confusion matrix and the mistakes") {
  if (!test::kWithPage) return test::skip(test::kNoPage);
  const Convnet convnet;
  // Hardly trained, so that there are more mistakes than the 80 that are shown.
  const auto run = test::succeeded(
      convnet.runSmall({"--epochs", "1", "--lr", "1e-6", "--report", "new/report", "--quiet"}));
  CHECK(run.err == "");
  CHECK(run.out.starts_with("test: accuracy 0."));
  const auto report = convnet.directory.path() / "new" / "report";
  CHECK(contains(readFile(report / "confusion.txt"), "confusion matrix"));
  const auto page = readFile(report / "report.html");
  const auto begin = page.find("id=\"data\">") + 10;
  const auto news = json::parse(page.substr(begin, page.find("</script>", begin) - begin)).as_array();
  REQUIRE(news.size() == 2);
  CHECK(contains(json::serialize(news[0]), "score/merged"));
  CHECK(contains(json::serialize(news[0]), "plan"));
  const auto& document = news[1].at("document");
  CHECK(document.at("confusion").at("rows").as_array().size() == 10);
  const auto& pictures = document.at("pictures").at("list").as_array();
  CHECK(pictures.size() == 80);
  CHECK(pictures[0].at("pixels").as_string().size() == 2 * 28 * 28);
}

TEST_CASE("the model has the same bits wherever the images are stored") {
  const Convnet convnet;
  const auto train = [&](const std::string& placement) {
    const auto run = test::succeeded(
        convnet.runSmall(test::withReport({"--epochs", "1", "--test-every", "1", "--placement", placement,
                                           "--model", placement, "--json", placement + ".json"},
                                          placement + "-report")));
    return run.out;
  };
  CHECK_FALSE(contains(train("auto"), "images: "));
  CHECK(train("host").starts_with("images: on the CPU, where the workers are\ndata: "));
  CHECK(train("device").starts_with(
      "images: on the CPU, where the workers are; batches name rows of them\ndata: "));
  const auto model = convnet.tensorsIn("auto");
  CHECK(model.size() > 3'000'000);
  CHECK((model == convnet.tensorsIn("host")));
  CHECK((model == convnet.tensorsIn("device")));
  const auto results = [&](const std::string& placement) {
    return json::parse(readFile(convnet.directory / (placement + ".json"))).as_object();
  };
  CHECK(results("device").at("configuration").at("training").at("placement") == "device");
  CHECK(results("auto").at("testAccuracy") == results("device").at("testAccuracy"));
  if (test::kWithPage)
    CHECK(readFile(convnet.directory.path() / "auto-report" / "confusion.txt") ==
          readFile(convnet.directory.path() / "device-report" / "confusion.txt"));
}

TEST_CASE("--strategy help prints a table of all strategies") {
  const Convnet convnet;
  const auto help = test::succeeded(convnet.run({"--strategy", "help"}));
  CHECK(help.err == "");
  CHECK(help.out == describeStrategies(2));
}

TEST_CASE("help explains every option and exits with 0") {
  const Convnet convnet;
  const auto help = test::succeeded(convnet.run({"--help"}));
  CHECK(help.err == "");
  std::istringstream options(
      "workers averaging-frequency strategy strategy-options batch epochs updater lr momentum "
      "l2 seed threads-per-worker pin-threads math-mode prefetch device data data-dir examples "
      "model resume checkpoint-dir checkpoint-every checkpoint-iterations checkpoint-minutes "
      "keep test-every test-iterations report tensorboard page curves store min-nodes json "
      "quiet help");
  for (std::string option; options >> option;)
    CHECK_MESSAGE(contains(help.out, "\n  --" + option + " "), option);
}

}  // namespace
}  // namespace muster
