// What muster train refuses, and how a training that fails ends.
#include <doctest/doctest.h>

#include <csignal>
#include <thread>

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
      {"--frobnicate",
       "muster: there is no option --frobnicate; --help lists the options; fields of the run file are set as "
       "in --set training.workers=4\n"},
      {"--wokers 2", "there is no option --wokers; the nearest is --workers; --help lists the options"},
      {"--work=2", "there is no option --work; the nearest is --workers; --help lists the options"},
      {"--threads 2", "there is no option --threads; the nearest is --threads-per-worker; --help lists"},
      {"--%canonical_option%", "there is no option --%canonical_option%; --help lists the options"},
      {"--learning-rate=0.1", "muster: there is no option --learning-rate: use --lr\n"},
      {"--batch-size 3", "muster: there is no option --batch-size: use --batch\n"},
      {"--test new.csv", "muster: there is no option --test: use --set data.test=VALUE\n"},
      {"mnist", "unexpected argument \"mnist\""},
      {"--workers", "the required argument for option '--workers' is missing"},
      {"--model ''", "--model needs a value, and it is empty, perhaps an unset variable"},
      {"--checkpoint-dir=", "--checkpoint-dir"},
      {"--workers 0", "muster: --workers 0: training.workers must be between 1 and 1024, got 0"},
      {"--workers=%x%y%", "training.workers: expected a whole number, found the string \"%x%y%\""},
      {"--lr nan",
       "muster: --lr nan: network.updater.learningRate: expected a finite number that fits a double, got "
       "nan\n"},
      {"--updater adam --momentum 0.5",
       "muster: --momentum 0.5: network.updater.momentum: there is no such field"},
      {"--strategy diloco --strategy-options rate=0",
       "muster: --strategy-options rate=0: training.strategy.rate must be above 0, got 0"},
      {"--strategy-options rate", "--strategy-options rate: expected NAME=VALUE, as in rate=0.7,every=100"},
      {"--strategy synchronous --averaging-frequency 3", "there is no option \"every\""},
      {"--device tpu",
       "muster: --device tpu: training.devices tpu: device: expected cpu, cuda or cuda:N, got \"tpu\""},
      {"--keep 3",
       "muster: --keep 3: listeners.checkpoints.directory: is missing; --checkpoint-dir sets "
       "listeners.checkpoints.directory\n"},
      {"--group a",
       "muster: --group a: listeners.group needs listeners.curves; --curves sets listeners.curves\n"},
      {"--page-port 8080", "listeners.pagePort needs listeners.page; --page sets listeners.page\n"},
      {"--set training.workers=0",
       "muster: --set training.workers=0: training.workers must be between 1 and "},
      {"--set workers", "muster: --set workers: expected KEY=VALUE"},
      {"--set lr=0.1",
       "muster: --set lr=0.1: a run file has no field lr; the nearest is network.updater.learningRate\n"},
      {"--quiet --watch", "--watch shows what --quiet leaves out"}};
  for (const auto& [options, text] : lines) muster.refuses(std::string("train run.json ") + options, text);
  CHECK(muster("train run.json --workers 0").out.empty());
  CHECK(muster.directory.names() == Names{"run.json"});
}

TEST_CASE("paths that cannot be read or written are refused before the training, in the program's words") {
  ConvnetRun muster;
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
  if (test::kWithPage) {
    refuses("--report", longName, "cannot be made: ");
    refuses("--report", "file/report", "cannot be made: ");
  }
  CHECK(muster("train run.json --json .").out.empty());
  muster.environment["MUSTER_DATA_DIR"] = longName;
  muster.refuses("train run.json --data mnist", longName + ": cannot be read: File name too long", 1);
  CHECK(muster.directory.names() == Names{"file", "run.json"});
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
  const std::string end = " would be replaced, but this program has not written it; give another ";
  for (const std::string name : {"report.html", "confusion.txt", "training.curves.jsonl"}) {
    muster.write(name, "mine");
    muster.refuses("train run.json --report .", name + ":" + end + "listeners.report", 1);
    CHECK(muster.read(name) == "mine");
    std::filesystem::remove(muster.directory / name);
  }
  muster.write("my.curves.jsonl", "mine");
  muster.refuses("train run.json --curves my.curves.jsonl", "my.curves.jsonl:" + end + "listeners.curves", 1);
  CHECK(muster.read("my.curves.jsonl") == "mine");
  CHECK(muster.directory.names() == Names{"my.curves.jsonl", "run.json"});
  for (int i = 0; i < 2; ++i) muster.succeeds("train run.json --report . --quiet");
}

TEST_CASE("a device that is not available is refused before the data are read") {
  const ConvnetRun muster;
  const std::string line = "train run.json --device cuda:99 --data mnist";
  muster.refuses(line, "muster: training.devices cuda:99: cuda:99 is not there; there ", 1);
  CHECK(muster(line).out.empty());
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

TEST_CASE("a NaN score ends a training, naming the worker and the batch once") {
  const ConvnetRun muster;
  const auto line =
      fmt::format("train run.json --lr 1e9 --quiet{}", test::kWithPage ? " --report report" : "");
  const auto error = test::errorOf(muster(line), 1);
  CHECK(error.starts_with("muster: worker "));
  CHECK(std::ranges::count(error, '\n') == 1);
  CHECK_CONTAINS(error, "failed in batch ");
  CHECK_CONTAINS(error, " of epoch 1: the score became ");
  CHECK(error.find("epoch") == error.rfind("epoch"));
  CHECK(muster.directory.names() == (test::kWithPage ? Names{"report", "run.json"} : Names{"run.json"}));
  if (test::kWithPage) CHECK_CONTAINS(muster.read("report/training.curves.jsonl"), "the score became ");
}

TEST_CASE("data that are asked for are never replaced by others, whether they are missing or broken") {
  const ConvnetRun muster;
  const auto cached = (muster.cache / "mnist").string();
  std::filesystem::create_directory(muster.directory / "empty");
  std::filesystem::create_directory(muster.directory / "broken");
  muster.write("broken/train-images-idx3-ubyte", "no images at all");
  const std::string train = "train run.json --data mnist";
  const auto missing = muster(train);
  CHECK(missing.out.empty());
  CHECK_CONTAINS(test::errorOf(missing, 1),
                 "muster: mnist: train-images-idx3-ubyte.gz is not in " + cached +
                     "; download: http://127.0.0.1:1/train-images-idx3-ubyte.gz could not be fetched");
  const auto elsewhere = test::errorOf(muster(train + "OrGenerated --data-dir empty"), 1);
  CHECK_CONTAINS(elsewhere, "muster: mnist: train-images-idx3-ubyte.gz is neither in empty nor in " + cached +
                                ", and fetching http://127.0.0.1:1/");
  muster.refuses(train + "OrGenerated --data-dir broken", "train-images-idx3-ubyte: wrong checksum: ", 1);
  muster.refuses(train + " --data-dir missing", "missing: no such directory, given by data.directory", 1);
}

TEST_CASE("without MNIST the run of ./run mnist uses generated digits, and the first line says why") {
  const ConvnetRun muster;
  muster.write("mnist.json", test::readFile(MUSTER_MNIST_RUN));
  const auto run = muster.succeeds("train mnist.json --examples 200 --epochs 1 --quiet");
  CHECK(
      run.out.starts_with("MNIST is not available, so this trains on generated digits (mnist: "
                          "train-images-idx3-ubyte.gz is not in "));
  CHECK_CONTAINS(run.out, "; download: http://127.0.0.1:1/");
}

TEST_CASE("Ctrl-C during a download exits at once with 130") {
  const test::HttpServer server([](const std::string&, int) {
    return test::HttpReply{.body = "some of it", .promised = 1000, .stall = true};
  });
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
