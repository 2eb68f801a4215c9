#include <boost/json.hpp>

#include <csignal>

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/source/named_images.h"
#include "tests/examples/convnet.h"

namespace muster {
namespace {

using test::ConvnetRun;
using Names = std::set<std::string>;

auto loaded(const ConvnetRun& muster, const std::string& name) {
  return MultiLayerNetwork::load(muster.directory / name);
}

TEST_CASE(
    "a resumed run ends with the bits of one that was never interrupted; with other workers it says so") {
  const ConvnetRun muster;
  muster.succeeds("train run.json --epochs 4 --model whole --checkpoint-dir c --keep 2");
  const auto whole = muster.tensorsIn("whole");
  CHECK((whole == muster.tensorsIn("c/checkpoint-epoch-0004.safetensors")));
  CHECK(test::namesIn(muster.directory / "c") ==
        Names{"checkpoint-epoch-0003.safetensors", "checkpoint-epoch-0004.safetensors"});

  const auto resumed = muster.succeeds(
      "train run.json --epochs 4 --model resumed --resume c/checkpoint-epoch-0003.safetensors");
  CHECK_CONTAINS(resumed.out, "resuming: c/checkpoint-epoch-0003.safetensors, with 3 epochs finished\n");
  CHECK_CONTAINS(resumed.err, "epoch 4/4");
  CHECK_LACKS(resumed.err, "epoch 3/4");
  CHECK((muster.tensorsIn("resumed") == whole));

  // Nothing is left to train: the program tests and saves the loaded network.
  const auto done = muster.succeeds("train run.json --epochs 4 --model again --resume whole");
  CHECK_CONTAINS(done.out,
                 "resuming: whole, with 4 epochs finished\n"
                 "nothing is left to train, as training.epochs is 4: ");
  CHECK_LACKS(done.out, "plan: ");
  CHECK_CONTAINS(done.out, "test: accuracy 0.");
  CHECK((muster.tensorsIn("again") == whole));

  const std::string more =
      "train run.json --epochs 5 --checkpoint-dir c --resume c --workers 3 --threads-per-worker 2 --prefetch "
      "0";
  const auto other = muster.succeeds(more);
  CHECK_CONTAINS(other.out,
                 "resuming: c/checkpoint-epoch-0004.safetensors, with 4 epochs finished\n"
                 "it was trained with training.threadsPerWorker 1 (now 2), training.workers 2 (now 3): the "
                 "training continues, but with other bits than without the change\nplan: 3 workers on cpu");
  CHECK_CONTAINS(other.err, "the checkpoint has 2 workers, this training has 3: each starts from the merged");
  // The next checkpoint is of the run with 3 workers.
  const auto next = muster.succeeds(more).out;
  CHECK_CONTAINS(next, "resuming: c/checkpoint-epoch-0005.safetensors, with 5 epochs finished\n");
  CHECK_LACKS(next, "it was trained with");
}

TEST_CASE("what cannot be resumed or would be replaced is refused before the data are read") {
  const ConvnetRun muster;
  const std::string train = "train run.json ", begins = train + "--checkpoint-dir c --model last --resume ";
  muster.refuses(
      train + "--resume c",
      "c: cannot be resumed: there is no such file or directory; --resume c and --checkpoint-dir c "
      "together begin a training that",
      1);
  CHECK_CONTAINS(muster.succeeds(begins + "c --epochs 2").out,
                 "nothing to resume in c: the training begins\n");
  const auto newest = muster.read("c/checkpoint-epoch-0002.safetensors");
  const auto run = muster(train + "--checkpoint-dir c");
  CHECK(run.out == "");
  CHECK(test::errorOf(run, 1) ==
        "muster: c: holds checkpoints of an earlier training, up to checkpoint-epoch-0002.safetensors; "
        "continue it "
        "with --resume c, name another directory, --checkpoint-dir DIRECTORY, or remove these files\n");
  CHECK(muster.read("c/checkpoint-epoch-0002.safetensors") == newest);
  muster.succeeds(begins + "last --epochs 3");  // it has the state of the last checkpoint
  muster.refuses(train + "--resume last --workers 3 --lr 0.5 --batch 64",
                 "last: cannot be resumed by this run: it was trained with data.batch 128 (now 64), "
                 "network.updater.learningRate.value 0.01 (now 0.5)\n",
                 1);
  CHECK_FALSE(muster.has("model.safetensors"));
}

TEST_CASE("Ctrl-C saves a model that can be resumed, and results marked as incomplete; it exits with 130") {
  const ConvnetRun muster;
  const std::string train = "train run.json --batch 8 --model net --json part.json" + test::reportIn("part");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    auto program = muster.start(train + " --epochs 100000");
    REQUIRE(program.awaitText("epoch 1/100000: score"));
    program.signal(signal);
    const auto run = program.wait();
    CAPTURE(run.err);
    CHECK(run.exit == 130);
    CHECK_CONTAINS(run.err, "Interrupted: ");
    CHECK_CONTAINS(run.out, "\ntraining: interrupted after ");

    const auto network = loaded(muster, "net");
    const auto epochs = network->epoch();
    CHECK(epochs >= 1);
    const auto remark = fmt::format("interrupted, with {} of 100000 epochs finished", epochs);
    CHECK_CONTAINS(run.out, "saved: net; " + remark + ", and --resume continues");
    if (test::kWithPage)
      CHECK_CONTAINS(muster.read("part/confusion.txt"), "from this program\n" + remark + "\n");
    const auto results = boost::json::parse(muster.read("part.json")).as_object();
    CHECK(results.at("interrupted") == true);
    CHECK(results.at("epochsFinished") == epochs);
    GeneratedDigitsIterator digits(100, 600, kDrawingSeed, false);
    CHECK(results.at("testAccuracy") == network->evaluate(digits).accuracy());

    // 75 batches per epoch, so 38 iterations for the first of two workers.
    const bool withinEpoch = network->iteration() != epochs * 38;
    const auto more = muster.succeeds(
        fmt::format("train run.json --batch 8 --epochs {} --resume net --model resumed", epochs + 1));
    CHECK(test::contains(more.out, " of the next") == withinEpoch);  // "1 batch" or "7 batches"
    const auto resumed = loaded(muster, "resumed");
    CHECK(resumed->epoch() == epochs + 1);
    CHECK(resumed->iteration() >= (epochs + 1) * 38);  // one more if the stop has left the workers uneven
    CHECK(resumed->iteration() <= (epochs + 1) * 38 + 1);
    std::filesystem::remove(muster.directory / "net");
  }
}

TEST_CASE("a second signal quits at once, and nothing is saved") {
  ConvnetRun muster;
  // The program leaves its threads running on purpose, for which ThreadSanitizer would change the exit
  // status.
  const char* const options = std::getenv("TSAN_OPTIONS");
  muster.environment["TSAN_OPTIONS"] = std::string(options ? options : "") + ":report_thread_leaks=0";
  auto program = muster.start("train run.json --epochs 100000 --batch 8" + test::reportIn("report"));
  REQUIRE(program.awaitText("epoch 1/100000: score"));
  program.signalTogether({SIGINT, SIGTERM});  // otherwise it might save before the second signal
  const auto run = program.wait();
  CHECK(run.exit == 130);
  CHECK_LACKS(run.out, "saved: ");
  CHECK(muster.directory.names() ==  // with the curves so far
        (test::kWithPage ? Names{"report", "run.json"} : Names{"run.json"}));
}

/// The points of a curve in a report, as text.
std::string pointsIn(const std::string& report, const std::string& curve) {
  const auto begin = report.find("{\"name\":\"" + curve + "\",\"points\":[[");
  REQUIRE(begin != report.npos);
  return report.substr(begin, report.find("]]", begin) - begin);
}

TEST_CASE("a training that is killed and resumed has one file of curves, one report and one list of scores") {
  const ConvnetRun muster;
  const auto line = [](const std::string& name) {
    return fmt::format(
        "train run.json --batch 8 --test-every 1 --epochs 12 --model {0} --checkpoint-dir {0}-c --resume "
        "{0}-c "
        "--checkpoint-iterations 7 --keep 2 --json {0}.json{1}",
        name, test::reportIn(name + "-report"));
  };
  muster.succeeds(line("whole"));
  {
    auto program = muster.start(line("parts"));
    REQUIRE(program.awaitText("epoch 2: test accuracy"));
    program.signal(SIGKILL);
    CHECK(program.wait().exit == -SIGKILL);
  }
  const auto run = muster.succeeds(line("parts"));
  CHECK_CONTAINS(run.out, "resuming: ");
  CHECK_LACKS(run.err, "curves");
  CHECK((muster.tensorsIn("parts") == muster.tensorsIn("whole")));

  const auto whole = boost::json::parse(muster.read("whole.json")).as_object(),
             parts = boost::json::parse(muster.read("parts.json")).as_object();
  CHECK(parts.at("firstEpoch") == 1);
  CHECK(parts.at("scoreByEpoch").as_array().size() == 12);
  for (const auto* scores : {"scoreByEpoch", "testAccuracyByEpoch"})
    CHECK(parts.at(scores) == whole.at(scores));
  if (!test::kWithPage) return;
  for (const auto* name : {"score/epoch", "test/accuracy"}) {
    CAPTURE(name);
    const auto points = pointsIn(muster.read("parts-report/report.html"), name);
    CHECK(std::ranges::count(points, ']') == 11);  // between twelve
    CHECK(points == pointsIn(muster.read("whole-report/report.html"), name));
  }
}

}  // namespace
}  // namespace muster
