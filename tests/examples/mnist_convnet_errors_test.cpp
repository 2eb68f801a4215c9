#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/io/checkpoint_files.h"
#include "tests/examples/convnet.h"
#include "tests/support/skip.h"

namespace muster {
namespace {

using test::contains;
using test::Convnet;
using test::Outcome;

/// Checks for one sentence on standard error from the program itself.
void checkRefusal(const Outcome& run, int exit, const std::string& problem) {
  CAPTURE(run.err);
  CHECK(run.exit == exit);
  CHECK(run.err.starts_with("mnist_convnet: "));
  CHECK(std::ranges::count(run.err, '\n') == 1);
  CHECK(contains(run.err, problem));
}

TEST_CASE("invalid options exit with 2 and a sentence") {
  const Convnet convnet;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--frobnicate"}, "unrecognised option '--frobnicate'"},
      {{"--work", "2"}, "unrecognised option '--work'"},
      {{"--%canonical_option%"},
       "the arguments \"--%canonical_option%\" cannot be read; --help lists the options"},
      {{"mnist"}, "unexpected argument \"mnist\""},
      {{"--workers", "0"}, "--workers must be between 1 and 1024, got 0"},
      {{"--workers", "two"}, "the argument ('two') for option '--workers' is invalid"},
      {{"--workers", "1.5"}, "('1.5') for option '--workers' is invalid: a whole number is wanted"},
      {{"--pin-threads", "often"},
       "('often') for option '--pin-threads' is invalid: true or false is wanted"},
      {{"--workers", "99999999999"}, "for option '--workers' is invalid: the number is too large"},
      {{"--epochs", "9223372036854775808"}, "for option '--epochs' is invalid: the number is too large"},
      {{"--epochs", "-9223372036854775809"}, "for option '--epochs' is invalid: the number is too small"},
      {{"--epochs", "1e3"}, "('1e3') for option '--epochs' is invalid: a whole number is wanted"},
      {{"--lr", "1e999"}, "('1e999') for option '--lr' is invalid: the number is too large"},
      {{"--workers"}, "the required argument for option '--workers' is missing"},
      {{"--mode", "democratic"},
       "--mode: there is no type \"democratic\"; there are averaging, synchronous, shared"},
      {{"--mode", "shared", "--averaging-frequency", "3"},
       "--averaging-frequency needs --mode averaging; the other modes merge every iteration"},
      {{"--mode", "synchronous", "--average-updaters", "false"},
       "--average-updaters false: with --mode synchronous the updaters' states are equal anyway"},
      {{"--strategy", "dilocco"}, "there is no strategy \"dilocco\"; the nearest is diloco, of "},
      {{"--strategy", "diloco", "--strategy-options", "rat=1"},
       "strategy diloco: there is no option \"rat\"; the nearest is rate, of every, "},
      {{"--strategy", "diloco", "--strategy-options", "rate=0"},
       "outer averaging: rate must be above 0, got 0"},
      {{"--strategy", "diloco", "--mode", "averaging"}, "--mode cannot be combined with --strategy"},
      {{"--strategy", "diloco", "--averaging-frequency", "3"},
       "--averaging-frequency cannot be combined with --strategy, which says when and how workers are "
       "merged; set every=N in --strategy-options"},
      {{"--strategy", "diloco", "--average-updaters", "false"},
       "--average-updaters cannot be combined with --strategy; set updaterState=keep in --strategy-options"},
      {{"--strategy-options", "rate=1"}, "--strategy-options needs --strategy"},
      {{"--averaging-frequency", "-3"}, "--averaging-frequency must be at least 1, got -3"},
      {{"--batch", "0"}, "--batch must be between 1 and 65536, got 0"},
      {{"--epochs", "0"}, "--epochs must be at least 1, got 0"},
      {{"--lr", "nan"}, "--lr must be a positive number, got nan"},
      {{"--lr", "0"}, "--lr must be a positive number, got 0"},
      {{"--momentum", "1"}, "--momentum must be at least 0 and below 1, got 1"},
      {{"--l2", "-1"}, "--l2 must be a number and not negative, got -1"},
      {{"--seed", "-1"}, "--seed must be at least 0, got -1"},
      {{"--threads-per-worker", "0"}, "--threads-per-worker must be between 1 and 1024, got 0"},
      {{"--prefetch", "-1"}, "--prefetch must be between 0 and 1048576, got -1"},
      {{"--examples", "0"}, "--examples must be at least 1, got 0"},
      {{"--updater", "newton"}, "there is no type \"newton\"; there are adagrad, adam"},
      {{"--updater", "adam", "--momentum", "0.5"}, "--momentum needs the updater nesterovs, not adam"},
      {{"--data", "imagenet"}, "--data must be mnist, fashion or generated, got imagenet"},
      {{"--data", "generated", "--data-dir", "."}, "--data-dir cannot be combined with --data generated"},
      {{"--device", "tpu"}, "--device tpu: device: expected cpu, cuda or cuda:N, got \"tpu\""},
      {{"--device", "cpu,cpu"}, "--device cpu,cpu: device: cpu is named twice in \"cpu,cpu\""},
      {{"--device", "cuda:0,cpu"}, "--device cuda:0,cpu: the CPU and GPUs cannot train together yet"},
      {{"--placement", "gpu"}, "--placement must be auto, host or device, got gpu"},
      {{"--keep", "3"}, "--keep needs --checkpoint-dir"},
      {{"--checkpoint-dir", "c", "--checkpoint-every", "0"}, "--checkpoint-every must be at least 1, got 0"},
      {{"--checkpoint-dir", "c", "--checkpoint-minutes", "1e300"},
       "--checkpoint-minutes must be between 0 and 100000000, got 1e+300"},
      {{"--model", ""}, "--model needs the name of a file or directory"},
      {{"--resume", ""}, "--resume needs the name of a file or directory"},
      {{"--checkpoint-dir="}, "--checkpoint-dir"},
      {{"--data-dir", ""}, "--data-dir needs the name of a file or directory"}};
  for (const auto& [arguments, problem] : cases) {
    const auto run = convnet.run(arguments);
    CAPTURE(arguments.front());
    checkRefusal(run, 2, problem);
    CHECK(run.out.empty());
  }
  CHECK(convnet.directory.names().empty());
}

TEST_CASE("paths that cannot be written are refused before the training") {
  const Convnet convnet;
  const auto refused = [&](const std::string& option, const std::string& path, const std::string& problem) {
    const auto run = convnet.runSmall({option, path});
    checkRefusal(run, 1, path + ": " + problem);
    CHECK(run.out.empty());
  };
  refused("--model", "missing/model.safetensors", "cannot be written: its directory: No such file");
  refused("--json", ".", "cannot be written: it is a directory");
  test::writeFile(convnet.directory / "file", "mine");
  if (test::kWithPage) {
    refused("--curves", ".", "cannot be written: it is a directory");
    refused("--report", std::string(256, 'x'), "cannot be made: ");
    refused("--report", "file/report", "cannot be made: ");
  }
  refused("--checkpoint-dir", "file", "cannot be made: ");
  CHECK(convnet.directory.names() == std::set<std::string>{"file"});
  CHECK(test::readFile(convnet.directory / "file") == "mine");
}

TEST_CASE("a second training that writes checkpoints into one directory is refused and saves nothing") {
  const Convnet convnet;
  const auto checkpoints = convnet.directory / "c", lock = checkpoints / ".checkpoint.muster-lock";
  const auto arguments = [](const std::string& model, std::int64_t epochs) {
    return Convnet::small({"--epochs", std::to_string(epochs), "--checkpoint-dir", "c",
                           "--checkpoint-iterations", "2", "--keep", "2", "--resume", "c", "--model", model,
                           "--quiet"});
  };
  test::Program first(Convnet::kExecutable, convnet.launch(arguments("first", 100000)));
  // Once it has saved a checkpoint, it has the lock.
  const auto wait = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (checkpointsIn(checkpoints, "checkpoint").empty() && std::chrono::steady_clock::now() < wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(first.stop());  // else it could delete the checkpoint that the second resumes
  REQUIRE(std::filesystem::exists(lock));
  const auto saved = checkpointsIn(checkpoints, "checkpoint");
  REQUIRE(!saved.empty());
  const auto more = saved.back().place.epoch + 1;  // epochs: some batches are left to train
  test::writeFile(convnet.directory / "second", "earlier");
  const auto second = convnet.run(arguments("second", more));
  CHECK(second.exit == 1);
  CHECK_MESSAGE(contains(second.err, "c: process "), second.err);
  CHECK(contains(second.err, " writes checkpoints into this directory"));
  CHECK(!contains(second.err, "listener"));  // refused before the training
  CHECK(test::readFile(convnet.directory / "second") == "earlier");
  first.signal(SIGKILL);
  first.wait();
  CHECK(convnet.run(arguments("third", more)).exit == 0);
  CHECK(!std::filesystem::exists(lock));
}

TEST_CASE("paths that cannot be reached are refused in the program's words") {
  const Convnet convnet;
  const std::string name(256, 'x'), problem = name + ": cannot be read: File name too long";
  checkRefusal(convnet.runSmall({"--resume", name}), 1, problem);
  checkRefusal(convnet.run({"--data-dir", name}), 1, problem);
  auto launch = convnet.launch({"--data", "mnist"});
  launch.environment["MUSTER_DATA_DIR"] = name;
  checkRefusal(test::runProgram(Convnet::kExecutable, launch), 1, problem);
}

TEST_CASE("options of a module that was not built are refused, and nothing is trained or written") {
  if (test::kWithPage) return test::skip("the programs were built with the page");
  const Convnet convnet;
  const std::vector<std::vector<std::string>> cases{
      {"--report", "report", "--quiet"}, {"--curves", "a.curves.jsonl"}, {"--page"}};
  for (const auto& arguments : cases) {
    const auto run = convnet.runSmall(arguments);
    checkRefusal(
        run, 2,
        arguments.front() +
            " cannot be used: this program was built without the page, which needs dygraphs; install "
            "libjs-dygraphs and build it again");
    CHECK(run.out.empty());
  }
  CHECK(convnet.directory.names().empty());
}

TEST_CASE("a report and curves replace only files of this program") {
  if (!test::kWithPage) return test::skip(test::kNoPage);
  const Convnet convnet;
  const std::string end = " would be replaced, but this program has not written it; give another ";
  for (const std::string name : {"report.html", "confusion.txt", "training.curves.jsonl"}) {
    test::writeFile(convnet.directory / name, "mine");
    const auto run = convnet.runSmall({"--report", "."});
    checkRefusal(run, 1, name + ":" + end + "--report");
    CHECK(run.out.empty());
    CHECK(test::readFile(convnet.directory / name) == "mine");
    std::filesystem::remove(convnet.directory / name);
  }
  test::writeFile(convnet.directory / "my.curves.jsonl", "mine");
  checkRefusal(convnet.runSmall({"--curves", "my.curves.jsonl"}), 1, "my.curves.jsonl:" + end + "--curves");
  CHECK(test::readFile(convnet.directory / "my.curves.jsonl") == "mine");
  CHECK(convnet.directory.names() == std::set<std::string>{"my.curves.jsonl"});
  for (int i = 0; i < 2; ++i)
    CHECK(convnet.runSmall({"--report", ".", "--epochs", "1", "--quiet"}).exit == 0);
}

TEST_CASE("a device that is not available is refused before the data are read") {
  const Convnet convnet;
  const auto run = convnet.run({"--data", "generated", "--device", "cuda:99"});
  checkRefusal(run, 1, "--device cuda:99: cuda:99 is not there; there ");
  CHECK(run.out.empty());
}

TEST_CASE("a full disk ends mnist_convnet with a message, and leaves existing files") {
  const Convnet convnet;
  test::writeFile(convnet.directory / "model.safetensors", "the one before");
  auto launch = convnet.launch(Convnet::small({"--epochs", "1", "--quiet", "--model", "model.safetensors"}));
  launch.fileSizeLimit = 64 * 1024;  // the model takes 3.4 MB
  const auto run = test::runProgram(Convnet::kExecutable, launch);
  checkRefusal(run, 1, "model.safetensors: could not be written: File too large");
  CHECK(test::readFile(convnet.directory / "model.safetensors") == "the one before");
  CHECK(convnet.directory.names() == std::set<std::string>{"model.safetensors"});
}

TEST_CASE("a NaN score ends mnist_convnet, naming the worker and the batch once") {
  const Convnet convnet;
  const auto run = convnet.runSmall(test::withReport({"--lr", "1e9", "--quiet"}, "report"));
  checkRefusal(run, 1, "failed in batch ");
  CHECK(contains(run.err, "mnist_convnet: worker "));
  CHECK(contains(run.err, " of epoch 1: the score became "));
  CHECK(run.err.find("epoch") == run.err.rfind("epoch"));
  if (test::kWithPage) {
    CHECK(convnet.directory.names() == std::set<std::string>{"report"});
    CHECK(contains(test::readFile(convnet.directory / "report" / "training.curves.jsonl"),
                   "the score became "));
  } else {
    CHECK(convnet.directory.names().empty());
  }
}

TEST_CASE("a user who requests MNIST gets MNIST or an error") {
  const Convnet convnet;
  const auto run = convnet.run({"--data", "mnist", "--examples", "200"});
  CHECK(run.exit == 1);
  CHECK(run.out.empty());
  CHECK(contains(run.err,
                 "mnist_convnet: mnist: train-images-idx3-ubyte.gz is not in " +
                     (convnet.cache / "mnist").string() +
                     "; download: http://127.0.0.1:1/train-images-idx3-ubyte.gz could not be fetched"));
  CHECK(convnet.directory.names().empty());
}

TEST_CASE("without a data option the program uses generated digits, and the first line says why") {
  const Convnet convnet;
  auto launch = convnet.launch({"--examples", "200", "--epochs", "1", "--quiet"});
  const std::string notice = "MNIST is not available, so this trains on generated digits (";
  const auto unreachable = test::runProgram(Convnet::kExecutable, launch);
  CHECK(unreachable.exit == 0);
  CHECK(unreachable.out.starts_with(notice + "mnist: train-images-idx3-ubyte.gz is not in "));
  CHECK(contains(unreachable.out, "; download: http://127.0.0.1:1/"));

  const auto file = convnet.cache / "file";
  test::writeFile(file, "in the way");
  launch.environment["MUSTER_CACHE_DIR"] = file.string();
  const auto noCache = test::runProgram(Convnet::kExecutable, launch);
  CHECK(noCache.exit == 0);
  CHECK(noCache.out.starts_with(notice + file.string()));
}

TEST_CASE("a directory without the data is named, and no other data are downloaded") {
  const Convnet convnet;
  std::filesystem::create_directory(convnet.directory / "empty");
  const auto run = convnet.run({"--data-dir", "empty"});
  checkRefusal(run, 1,
               "mnist: train-images-idx3-ubyte.gz is neither in empty nor in " +
                   (convnet.cache / "mnist").string() + ", and fetching http://127.0.0.1:1/");
  CHECK(run.out.empty());

  auto launch = convnet.launch({"--examples", "200", "--epochs", "1", "--quiet"});
  launch.environment["MUSTER_DATA_DIR"] = (convnet.directory / "empty").string();
  const auto drawn = test::runProgram(Convnet::kExecutable, launch);
  CHECK(drawn.exit == 0);
  CHECK(contains(drawn.out, "train-images-idx3-ubyte.gz is neither in " +
                                (convnet.directory / "empty").string() + " nor in "));
}

TEST_CASE("broken data give an error, and are never replaced by others") {
  const Convnet convnet;
  checkRefusal(convnet.run({"--data-dir", "missing"}), 1, "missing: no such directory, given by --data-dir");
  test::writeFile(convnet.directory / "train-images-idx3-ubyte", "no images at all");
  for (const char* data : {"mnist", ""}) {
    std::vector<std::string> arguments;
    if (*data != '\0') arguments = {"--data", data};
    auto launch = convnet.launch(arguments);
    launch.environment["MUSTER_DATA_DIR"] = convnet.directory.path().string();
    const auto run = test::runProgram(Convnet::kExecutable, launch);
    checkRefusal(run, 1, "train-images-idx3-ubyte: wrong checksum: ");
    CHECK(run.out.empty());
  }
}

/// The kernel accepts connections, but the server never answers.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(socket_, any, size) == 0);
    REQUIRE(::listen(socket_, 5) == 0);
    REQUIRE(::getsockname(socket_, any, &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

 private:
  int socket_;
  int port_ = 0;
};

TEST_CASE("Ctrl-C during a download exits at once with 130") {
  const Convnet convnet;
  const SilentServer server;
  auto launch = convnet.launch({"--data", "mnist"});
  launch.environment["MUSTER_MNIST_URL"] = server.address();
  test::Program program(Convnet::kExecutable, launch);
  REQUIRE(program.awaitText("fetching " + server.address()));
  program.signal(SIGINT);
  CHECK(program.wait().exit == 130);
  CHECK(convnet.directory.names().empty());
}

}  // namespace
}  // namespace muster
