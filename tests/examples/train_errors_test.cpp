// What muster train refuses, and how a training that fails ends.
#include <sys/stat.h>

#include <csignal>

#include "muster/core/io/checkpoint_files.h"
#include "tests/examples/convnet.h"
#include "tests/support/http_server.h"
#include "tests/support/skip.h"

namespace muster {
namespace {

using test::ConvnetRun;
using Names = std::set<std::string>;

TEST_CASE("invalid options exit with 2 and a sentence that names them, and write nothing") {
  const ConvnetRun muster;
  const std::pair<const char*, const char*> lines[] = {
      {"--frobnicate", "; --help lists the options; fields of the run file are set as in --set training.wor"},
      {"--wokers 2", "there is no option --wokers; the nearest is --workers; --help lists the options"},
      {"--threads 2", "there is no option --threads; the nearest is --threads-per-worker; --help lists"},
      {"--%canonical_option%", "there is no option --%canonical_option%; --help lists the options"},
      {"--learning-rate=0.1", "muster: there is no option --learning-rate: use --lr\n"},
      {"mnist", "unexpected argument \"mnist\""},
      {"--workers", "the required argument for option '--workers' is missing"},
      {"--model ''", "--model needs a value, and it is empty, perhaps an unset variable"},
      {"--checkpoint-dir=", "--checkpoint-dir"},
      {"--workers 0", "muster: --workers 0: training.workers must be between 1 and 1024, got 0"},
      {"--workers=%x%y%", "training.workers: expected a whole number, found the string \"%x%y%\""},
      {"--strategy diloco --strategy-options rate=0",
       "muster: --strategy-options rate=0: training.strategy.rate must be above 0, got 0"},
      {"--strategy-options rate", "--strategy-options rate: expected NAME=VALUE, as in rate=0.7,every=100"},
      {"--keep 3", "--keep 3: listeners.checkpoints.directory: is missing; --checkpoint-dir sets listeners."},
      {"--set training.workers=0", "muster: --set training.workers=0: training.workers must be between 1 "},
      {"--set workers", "muster: --set workers: expected KEY=VALUE"},
      {"--quiet --watch", "--watch shows what --quiet leaves out"}};
  for (const auto& [options, text] : lines) muster.refuses(std::string("train run.json ") + options, text);
  CHECK(muster.directory.names() == Names{"run.json"});
}

TEST_CASE("paths and devices that cannot be used are refused before the data are read") {
  ConvnetRun muster;
  REQUIRE(::mkfifo((muster.directory / "pipe").c_str(), 0600) == 0);
  muster.write("file", "mine");
  const std::string longName(256, 'x');
  const auto refuses = [&](const std::string& option, const std::string& path, const std::string& problem) {
    muster.refuses("train run.json " + option + " " + path, "muster: " + path + ": " + problem, 1);
  };
  refuses("--model", "missing/model.safetensors", "cannot be written: its directory: No such file");
  refuses("--json", ".", "cannot be written: it is a directory");
  refuses("--checkpoint-dir", "file", "cannot be made: ");
  refuses("--resume", longName, "cannot be read: File name too long");
  refuses("--data mnist --data-dir", longName, "cannot be read: File name too long");
  refuses("--resume", "pipe", "cannot be read: it is not a regular file");
  if (test::kWithPage) refuses("--report", "file/report", "cannot be made: ");
  muster.refuses("train run.json --device cuda:99 --data mnist",
                 "muster: training.devices cuda:99: cuda:99 is not there; there ", 1);
  CHECK(muster("train run.json --json .").out == "");
  muster.environment["MUSTER_DATA_DIR"] = longName;
  muster.refuses("train run.json --data mnist",
                 "muster: " + longName + ": cannot be read: File name too long\n", 1);
  CHECK(muster.directory.names() == Names{"file", "pipe", "run.json"});
  CHECK(muster.read("file") == "mine");
}

TEST_CASE("a second training that writes checkpoints into one directory is refused and saves nothing") {
  const ConvnetRun muster;
  const auto checkpoints = muster.directory / "c";
  const std::string train =
      "train run.json --checkpoint-dir c --checkpoint-iterations 2 --keep 2 --resume c --quiet ";
  auto first = muster.start(train + "--model first --epochs 100000");
  // Once it has saved a checkpoint, it has the lock.
  const auto wait = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (checkpointsIn(checkpoints, "checkpoint").empty() && std::chrono::steady_clock::now() < wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(first.stop());  // else it could delete the checkpoint that the second resumes
  REQUIRE(muster.has("c/.checkpoint.muster-lock"));
  const auto saved = checkpointsIn(checkpoints, "checkpoint");
  REQUIRE(!saved.empty());
  const auto epochs = fmt::format(" --epochs {}", saved.back().place.epoch + 1);  // some batches are left
  muster.write("second", "earlier");
  const auto second = test::errorOf(muster(train + "--model second" + epochs), 1);
  CHECK_CONTAINS(second, "c: process ");
  CHECK_CONTAINS(second, " writes checkpoints into this directory");
  CHECK_LACKS(second, "listener");  // refused before the training
  CHECK(muster.read("second") == "earlier");
  first.signal(SIGKILL);
  first.wait();
  muster.succeeds(train + "--model third" + epochs);
  CHECK_FALSE(muster.has("c/.checkpoint.muster-lock"));
}

TEST_CASE("a report and curves replace only files of this program") {
  if (!test::kWithPage) return test::skip(test::kNoPage);
  const ConvnetRun muster;
  for (const auto& [name, option, path] : {std::array<std::string, 3>{"report.html", "report", "."},
                                           {"confusion.txt", "report", "."},
                                           {"training.curves.jsonl", "report", "."},
                                           {"my.curves.jsonl", "curves", "my.curves.jsonl"}}) {
    muster.write(name, "mine");
    muster.refuses(
        "train run.json --" + option + " " + path,
        name + ": would be replaced, but this program has not written it; give another listeners." + option,
        1);
    CHECK(muster.read(name) == "mine");
    CHECK(muster.directory.names() == Names{name, "run.json"});
    std::filesystem::remove(muster.directory / name);
  }
  for (int i = 0; i < 2; ++i) muster.succeeds("train run.json --report . --quiet");
}

TEST_CASE("a full disk ends a training with a message, and leaves existing files") {
  const ConvnetRun muster;
  const std::string before("\x02\0\0\0\0\0\0\0{}", 10);  // as a model begins
  muster.write("model.safetensors", before);
  const auto run = muster.shell("ulimit -f 128; muster train run.json --quiet");  // 64 KiB of 3.4 MB
  CHECK(test::errorOf(run, 1) == "muster: model.safetensors: could not be written: File too large\n");
  CHECK(muster.read("model.safetensors") == before);
  CHECK(muster.directory.names() == Names{"model.safetensors", "run.json"});
}

TEST_CASE("a training that diverges says where, tells its curves, and is saved beside its model") {
  const ConvnetRun muster;
  const auto error = test::errorOf(
      muster("train run.json --lr 1e30 --averaging-frequency 1 --quiet" + test::reportIn("report")), 1);
  CHECK(error.starts_with("muster: worker "));
  CHECK(std::ranges::count(error, '\n') == 1);
  for (const char* part : {"failed in batch ", " of epoch 1: the score became ",
                           "this was with network.updater.learningRate 1e+30, and the network is saved as "
                           "model-diverged.safetensors instead of model.safetensors\n"})
    CHECK_CONTAINS(error, part);
  CHECK(error.find("epoch") == error.rfind("epoch"));  // the worker's sentence, once
  CHECK_FALSE(muster.has("model.safetensors"));
  if (test::kWithPage) CHECK_CONTAINS(muster.read("report/training.curves.jsonl"), "the score became ");
}

TEST_CASE("data that are asked for are not replaced by others; the run of ./run mnist may, and says why") {
  const ConvnetRun muster;
  const auto missing = muster("train run.json --data mnist");
  CHECK(missing.out == "");
  CHECK_CONTAINS(test::errorOf(missing, 1), "muster: mnist: train-images-idx3-ubyte.gz is not in " +
                                                (muster.cache / "mnist").string() +
                                                "; download: http://127.0.0.1:1/");
  const auto run = muster.succeeds("train " MUSTER_MNIST_RUN " --examples 200 --epochs 1 --quiet");
  CHECK(run.out.starts_with("MNIST is not available, so this trains on generated digits (mnist: "));
}

TEST_CASE("Ctrl-C during a download exits at once with 130") {
  const test::HttpServer server({.body = "some of it", .promised = 1000, .stall = true});
  ConvnetRun muster;
  muster.environment["MUSTER_MNIST_URL"] = server.address();
  auto program = muster.start("train run.json --data mnist");
  REQUIRE(program.awaitText("fetching " + server.address()));
  program.signal(SIGINT);
  CHECK(program.wait().exit == 130);
  CHECK(muster.directory.names() == Names{"run.json"});
}

}  // namespace
}  // namespace muster
