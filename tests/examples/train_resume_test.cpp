#include <doctest/doctest.h>

#include <fmt/format.h>

#include <boost/json.hpp>

#include <csignal>
#include <sstream>
#include <string_view>

#include "muster/core/eval/evaluation.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/source/named_images.h"
#include "tests/examples/convnet.h"

namespace muster {
namespace {

using test::contains;
using test::Convnet;
using test::readFile;

TEST_CASE("a resumed run ends with the same bits as one that was never interrupted") {
  const Convnet convnet;
  REQUIRE(
      convnet.runSmall({"--epochs", "4", "--model", "whole", "--checkpoint-dir", "c", "--keep", "2"}).exit ==
      0);
  const auto checkpoints = convnet.directory / "c";
  const auto third = checkpoints / "checkpoint-epoch-0003.safetensors";
  const std::string whole = convnet.tensorsIn("whole");
  CHECK((whole == convnet.tensorsIn("c/checkpoint-epoch-0004.safetensors")));
  CHECK_FALSE(std::filesystem::exists(checkpoints / "checkpoint-epoch-0002.safetensors"));

  const auto resumed =
      test::succeeded(convnet.runSmall({"--epochs", "4", "--model", "resumed", "--resume", third.string()}));
  CHECK(contains(resumed.out, "resuming: " + third.string() + ", with 3 epochs finished\n"));
  CHECK(contains(resumed.err, "epoch 4/4"));
  CHECK_FALSE(contains(resumed.err, "epoch 3/4"));
  CHECK((convnet.tensorsIn("resumed") == whole));

  // Nothing is left to train: the program tests and saves the loaded network.
  const auto done =
      test::succeeded(convnet.runSmall({"--epochs", "4", "--model", "again", "--resume", "whole"}));
  CHECK(contains(
      done.out,
      "resuming: whole, with 4 epochs finished\nnothing is left to train, as training.epochs is 4: "));
  CHECK_FALSE(contains(done.out, "plan: "));
  CHECK(contains(done.out, "test: accuracy 0."));
  CHECK((convnet.tensorsIn("again") == whole));
}

TEST_CASE("a strategy by name resumes to the same bits, and refuses other options") {
  const Convnet convnet;
  const auto train = [&](std::vector<std::string> more,
                         const std::string& options = "every=3,rate=0.5,updaterState=average") {
    more.insert(more.end(), {"--strategy", "diloco", "--strategy-options", options});
    return convnet.runSmall(more);
  };
  REQUIRE(train({"--epochs", "3", "--model", "whole"}).exit == 0);
  REQUIRE(train({"--epochs", "1", "--model", "first"}).exit == 0);
  REQUIRE(train({"--epochs", "3", "--model", "resumed", "--resume", "first"}).exit == 0);
  CHECK((convnet.tensorsIn("resumed") == convnet.tensorsIn("whole")));
  CHECK(contains(test::errorOf(train({"--model", "new", "--resume", "first"}, "every=3"), 1),
                 "training.strategy.rate 0.5 (now "));
  // Here each worker keeps its own momentum.
  REQUIRE(train({"--epochs", "3", "--model", "whole kept"}, "every=3").exit == 0);
  REQUIRE(train({"--epochs", "1", "--model", "kept"}, "every=3").exit == 0);
  REQUIRE(train({"--epochs", "3", "--model", "resumed", "--resume", "kept"}, "every=3").exit == 0);
  CHECK((convnet.tensorsIn("resumed") == convnet.tensorsIn("whole kept")));
}

TEST_CASE("a training continues with other workers and threads, and says so") {
  const Convnet convnet;
  REQUIRE(convnet.runSmall({"--epochs", "1", "--checkpoint-dir", "c", "--workers", "2"}).exit == 0);
  const std::vector<std::string> more{"--epochs",  "2", "--checkpoint-dir",     "c", "--resume",   "c",
                                      "--workers", "3", "--threads-per-worker", "2", "--prefetch", "0"};
  const auto run = test::succeeded(convnet.runSmall(more));
  CHECK(contains(
      run.out,
      "resuming: c/checkpoint-epoch-0001.safetensors, with 1 epoch finished\n"
      "it was trained with training.threadsPerWorker 1 (now 2), training.workers 2 (now 3): the training "
      "continues, but with other bits than without the change\nplan: 3 workers on cpu"));
  CHECK(contains(run.err, "the checkpoint has 2 workers, this training has 3: each starts from the merged"));
  CHECK(MultiLayerNetwork::load(convnet.directory / "c" / "checkpoint-epoch-0002.safetensors")->epoch() == 2);
  // The next checkpoint is of the run with 3 workers.
  const auto again = test::succeeded(convnet.runSmall(more));
  CHECK_FALSE(contains(again.out, "it was trained with"));
}

TEST_CASE("checkpoints of an earlier training are refused before the data are read, unless it is resumed") {
  const Convnet convnet;
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& problem) {
    const auto run = convnet.runSmall(arguments);
    CHECK(run.exit == 1);
    CHECK(run.out.empty());
    CHECK_MESSAGE(run.err.starts_with("muster: " + problem), run.err);
  };
  const std::vector<std::string> both{"--quiet", "--epochs", "2", "--checkpoint-dir", "c", "--resume", "c"};
  refused({"--resume", "c"},
          "c: cannot be resumed: there is no such file or directory; --resume c and --checkpoint-dir c "
          "together begin a training that");
  REQUIRE(std::filesystem::create_directory(convnet.directory / "c"));
  refused({"--resume", "c"}, "c: cannot be resumed: the directory holds no checkpoint; --resume c and ");
  CHECK(convnet.runSmall(both).exit == 0);
  CHECK(convnet.runSmall(both).exit == 0);  // nothing is left to train
  const auto before = readFile(convnet.directory / "c" / "checkpoint-epoch-0002.safetensors");
  const std::string held = "c: holds checkpoints of an earlier training, up to ";
  refused({"--epochs", "1", "--checkpoint-dir", "c"},
          held +
              "checkpoint-epoch-0002.safetensors; continue it with --resume c, name another directory, "
              "--checkpoint-dir DIRECTORY, or remove these files\n");
  refused({"--epochs", "1", "--checkpoint-dir", convnet.directory.path().string() + "/./c/"}, "");
  refused(
      {"--checkpoint-dir", "c", "--resume", "c/checkpoint-epoch-0001.safetensors"},
      "c: holds checkpoint-epoch-0002.safetensors, which is newer than checkpoint-epoch-0001.safetensors");
  REQUIRE(convnet.runSmall({"--epochs", "3", "--quiet", "--model", "other"}).exit == 0);
  refused(
      {"--checkpoint-dir", "c", "--resume", "other"},
      "c: holds checkpoints up to checkpoint-epoch-0002.safetensors, but the training is to continue from "
      "another file, other; continue it with --resume c, name another directory, --checkpoint-dir DIRECTORY, "
      "or "
      "remove these files\n");
  REQUIRE(std::filesystem::create_directory(convnet.directory / "b"));
  test::writeFile(convnet.directory / "b" / "checkpoint-best.safetensors", before);
  refused(
      {"--checkpoint-dir", "b"},
      "b: holds checkpoint-best.safetensors, the best state of an earlier training; continue it with "
      "--resume b/checkpoint-best.safetensors, name another directory, --checkpoint-dir DIRECTORY, or remove "
      "this file\n");
  refused({"--checkpoint-dir", "b", "--resume", "b"},
          "b: holds checkpoint-best.safetensors, the best state of ");
  CHECK(readFile(convnet.directory / "c" / "checkpoint-epoch-0002.safetensors") == before);
  CHECK(convnet
            .runSmall({"--epochs", "3", "--quiet", "--checkpoint-dir", "c", "--resume",
                       "./c/../c/checkpoint-epoch-0002.safetensors"})
            .exit == 0);
  // The network that a training saves at its end has the state of its last checkpoint.
  REQUIRE(convnet.runSmall({"--epochs", "1", "--quiet", "--checkpoint-dir", "d", "--model", "late"}).exit ==
          0);
  CHECK(convnet.runSmall({"--epochs", "2", "--quiet", "--checkpoint-dir", "d", "--resume", "late"}).exit ==
        0);
  const auto begun =
      test::succeeded(convnet.runSmall({"--epochs", "1", "--checkpoint-dir", "new", "--resume", "new/"}));
  CHECK(contains(begun.out, "nothing to resume in new/: the training begins\n"));
}

TEST_CASE("a file of another run or with other options is not resumed") {
  const Convnet convnet;
  REQUIRE(convnet.runSmall({"--epochs", "1", "--model", "saved", "--workers", "1"}).exit == 0);
  const auto other = convnet.runSmall(
      {"--resume", "saved", "--model", "new", "--workers", "3", "--lr", "0.5", "--batch", "64"});
  CHECK(other.exit == 1);
  CHECK(other.out.empty());
  CHECK(other.err ==
        "muster: saved: cannot be resumed by this run: it was trained with data.batch 128 (now 64), "
        "network.updater.learningRate.value 0.01 (now 0.5)\n");

  MultiLayerNetwork::load(convnet.directory / "saved")->save(convnet.directory / "foreign");
  const auto foreign = convnet.runSmall({"--resume", "foreign", "--model", "new"});
  CHECK(foreign.exit == 1);
  CHECK(foreign.out.empty());
  CHECK(foreign.err == "muster: foreign: cannot be resumed: it was not saved by muster train\n");

  const std::string bytes = readFile(convnet.directory / "saved");
  test::writeFile(convnet.directory / "cut", bytes.substr(0, bytes.size() / 2));
  const auto cut = convnet.runSmall({"--resume", "cut", "--model", "new"});
  CHECK(cut.exit == 1);
  CHECK(cut.err.starts_with("muster: cut: "));
  CHECK_FALSE(std::filesystem::exists(convnet.directory / "new"));
}

TEST_CASE("Ctrl-C saves a model that can be used and resumed, and exits with 130") {
  const Convnet convnet;
  const auto arguments = [](const std::string& epochs, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--epochs", epochs, "--batch", "8"});
    return Convnet::small(more);
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    test::Program program(Convnet::kExecutable, convnet.launch(arguments("100000")));
    REQUIRE(program.awaitText("epoch 1/100000: score"));
    program.signal(signal);
    const auto run = program.wait();
    CAPTURE(run.err);
    CHECK(run.exit == 130);
    CHECK(contains(run.err, "Interrupted: "));
    CHECK(contains(run.out, "saved: mnist-convnet.safetensors"));

    const auto file = convnet.directory / "mnist-convnet.safetensors";
    const auto network = MultiLayerNetwork::load(file);
    const auto epochs = network->epoch();
    CHECK(epochs >= 1);
    CHECK(contains(run.out, "interrupted, with " + std::to_string(epochs) + " of 100000 epochs finished"));
    // 75 batches per epoch, so 38 iterations for the first of two workers.
    const bool withinEpoch = network->iteration() != epochs * 38;
    const auto position = positionIn(network->trainingState());
    CHECK((position->nextBatch > 0 || !position->trainedLater.empty()) == withinEpoch);

    const auto more = test::succeeded(convnet.run(
        arguments(std::to_string(epochs + 1), {"--resume", file.string(), "--model", "resumed"})));
    CHECK(contains(more.out, " of the next") == withinEpoch);  // "1 batch" or "7 batches"
    const auto resumed = MultiLayerNetwork::load(convnet.directory / "resumed");
    CHECK(resumed->epoch() == epochs + 1);
    CHECK(resumed->iteration() >= (epochs + 1) * 38);  // one more if the stop has left the workers uneven
    CHECK(resumed->iteration() <= (epochs + 1) * 38 + 1);
    std::filesystem::remove(file);
  }
}

TEST_CASE("Ctrl-C writes the requested results and report, marked as incomplete") {
  const Convnet convnet;
  test::Program program(Convnet::kExecutable,
                        convnet.launch(Convnet::small(test::withReport(
                            {"--epochs", "100000", "--batch", "8", "--json", "part.json"}, "part"))));
  REQUIRE(program.awaitText("epoch 1/100000: score"));
  program.signal(SIGINT);
  const auto run = program.wait();
  CAPTURE(run.err);
  CHECK(run.exit == 130);
  const auto network = MultiLayerNetwork::load(convnet.directory / "mnist-convnet.safetensors");
  const auto results = boost::json::parse(readFile(convnet.directory / "part.json")).as_object();
  CHECK(results.at("interrupted") == true);
  CHECK(results.at("epochsFinished").as_int64() == network->epoch());
  CHECK(results.at("firstEpoch").as_int64() == 1);
  GeneratedDigitsIterator digits(100, 600, kDrawingSeed, false);
  CHECK(results.at("testAccuracy").as_double() == network->evaluate(digits).accuracy());
  const auto remark = fmt::format("interrupted, with {} of 100000 epochs finished", network->epoch());
  CHECK(contains(run.out, "saved: mnist-convnet.safetensors; " + remark + ", and --resume continues"));
  CHECK(contains(run.out, "\ntraining: interrupted after "));
  CHECK(contains(run.out, "\njson: part.json\n"));
  if (test::kWithPage)
    CHECK(contains(readFile(convnet.directory / "part" / "confusion.txt"),
                   "from this program\n" + remark + "\n"));
}

TEST_CASE("a second signal quits at once, and nothing is saved") {
  const Convnet convnet;
  auto launch =
      convnet.launch(Convnet::small(test::withReport({"--epochs", "100000", "--batch", "8"}, "report")));
  // The program leaves its threads running on purpose, for which ThreadSanitizer would change the exit
  // status.
  const char* const options = std::getenv("TSAN_OPTIONS");
  launch.environment["TSAN_OPTIONS"] = std::string(options ? options : "") + ":report_thread_leaks=0";
  test::Program program(Convnet::kExecutable, launch);
  REQUIRE(program.awaitText("epoch 1/100000: score"));
  program.signalTogether({SIGINT, SIGTERM});  // otherwise it might save before the second signal
  const auto run = program.wait();
  CHECK(run.exit == 130);
  CHECK_FALSE(contains(run.out, "saved: "));
  CHECK(convnet.directory.names() ==  // with the curves so far
        (test::kWithPage ? std::set<std::string>{"report"} : std::set<std::string>{}));
}

/// The points of a curve in a file of curves, as text.
[[maybe_unused]] std::vector<std::string> pointsIn(const std::filesystem::path& file, std::string_view name) {
  std::vector<std::string> points;
  std::istringstream lines(readFile(file));
  for (std::string line; std::getline(lines, line);) {
    const auto news = boost::json::parse(line).as_object();
    if (const auto* all = news.if_contains("all"); all && all->as_bool()) points.clear();
    const auto* const series = news.if_contains("series");
    if (!series) continue;
    for (const auto& curve : series->as_array())
      if (curve.at("name").as_string() == name)
        for (const auto& point : curve.at("points").as_array())
          points.push_back(boost::json::serialize(point));
  }
  return points;
}

TEST_CASE("a training that is killed and resumed has one file of curves, one report and one list of scores") {
  const Convnet convnet;
  const auto arguments = [](const std::string& name) {
    return Convnet::small(
        test::withReport({"--batch", "8", "--test-every", "1", "--epochs", "12", "--model", name,
                          "--checkpoint-dir", name + "-c", "--checkpoint-iterations", "7", "--keep", "2",
                          "--resume", name + "-c", "--json", name + ".json"},
                         name + "-report"));
  };
  REQUIRE(convnet.run(arguments("whole")).exit == 0);
  {
    test::Program program(Convnet::kExecutable, convnet.launch(arguments("parts")));
    REQUIRE(program.awaitText("epoch 2: test accuracy"));
    program.signal(SIGKILL);
    CHECK(program.wait().exit == -SIGKILL);
  }
  const auto run = test::succeeded(convnet.run(arguments("parts")));
  CHECK(contains(run.out, "resuming: "));
  CHECK_FALSE(contains(run.err, "curves"));
  CHECK((convnet.tensorsIn("parts") == convnet.tensorsIn("whole")));

  const auto results = [&](const std::string& name) {
    return boost::json::parse(readFile(convnet.directory / (name + ".json"))).as_object();
  };
  const auto whole = results("whole"), parts = results("parts");
  CHECK(parts.at("firstEpoch") == 1);
  CHECK(parts.at("scoreByEpoch").as_array().size() == 12);
  CHECK(parts.at("scoreByEpoch") == whole.at("scoreByEpoch"));
  CHECK(parts.at("testAccuracyByEpoch") == whole.at("testAccuracyByEpoch"));
#ifdef MUSTER_WITH_PAGE
  const auto curves = [&](const std::string& name) {
    return convnet.directory / (name + "-report") / "training.curves.jsonl";
  };
  for (const auto* name : {"score/epoch", "test/accuracy"}) {
    CAPTURE(name);
    CHECK(pointsIn(curves("parts"), name).size() == 12);
    CHECK(pointsIn(curves("parts"), name) == pointsIn(curves("whole"), name));
  }
  const auto page = readFile(convnet.directory / "parts-report" / "report.html");
  CHECK(contains(page, "{\"name\":\"score/epoch\",\"points\":[[38,"));
#endif
}

}  // namespace
}  // namespace muster
