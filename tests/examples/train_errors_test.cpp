#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <thread>

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
  CHECK(run.err.starts_with("muster: "));
  CHECK(std::ranges::count(run.err, '\n') == 1);
  CHECK(contains(run.err, problem));
}

TEST_CASE("invalid options exit with 2 and a sentence") {
  const Convnet convnet;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--frobnicate"}, "there is no option --frobnicate; --help lists the options"},
      {{"--wokers", "2"}, "there is no option --wokers; the nearest is --workers; --help lists the options"},
      {{"--work=2"}, "there is no option --work; the nearest is --workers; --help lists the options"},
      {{"--%canonical_option%"}, "there is no option --%canonical_option%; --help lists the options"},
      {{"--workers=%x%y%"}, "training.workers: expected a whole number, found the string \"%x%y%\""},
      {{"--lr", "nan"},
       "muster: --lr nan: network.updater.learningRate: expected a finite number that fits a double, got "
       "nan\n"},
      {{"mnist"}, "unexpected argument \"mnist\""},
      {{"--workers"}, "the required argument for option '--workers' is missing"},
      {{"--workers", "0"}, "muster: --workers 0: training.workers must be between 1 and 1024, got 0"},
      {{"--workers", "two"},
       "muster: --workers two: training.workers: expected a whole number, found the string \"two\""},
      {{"--workers", "1.5"}, "training.workers: expected a whole number, found 1.5"},
      {{"--pin-threads", "often"}, "training.pinThreads: expected true or false, found the string \"often\""},
      {{"--epochs", "9223372036854775808"},
       "training.epochs: expected a whole number, found 9223372036854775808"},
      {{"--epochs", "0"}, "muster: --epochs 0: training.epochs must be between 1 and "},
      {{"--mode", "shared"}, "there is no option --mode: use --strategy\n"},
      {{"--average-updaters=false"},
       "there is no option --average-updaters: use --strategy-options updaterState=keep\n"},
      {{"--strategy", "dilocco"}, "there is no strategy \"dilocco\"; the nearest is diloco, of "},
      {{"--strategy", "diloco", "--strategy-options", "rat=1"},
       "there is no option \"rat\"; the nearest is rate, of every, "},
      {{"--strategy", "diloco", "--strategy-options", "rate=0"},
       "muster: --strategy-options rate=0: training.strategy.rate must be above 0, got 0"},
      {{"--strategy-options", "rate"},
       "--strategy-options rate: expected NAME=VALUE, as in rate=0.7,every=100"},
      {{"--strategy", "synchronous", "--averaging-frequency", "3"}, "there is no option \"every\""},
      {{"--averaging-frequency", "-3"}, "training.strategy.every must be between 1 and "},
      {{"--batch", "0"}, "muster: --batch 0: data.batch must be between 1 and 65536, got 0"},
      {{"--momentum", "1"}, "network: updater nesterovs: momentum must be in [0, 1), got 1"},
      {{"--l2", "-1"}, "l2 must be finite and not negative, got -1"},
      {{"--seed", "-1"}, "muster: --seed -1: data.seed must be between 0 and "},
      {{"--threads-per-worker", "0"}, "training.threadsPerWorker must be between 1 and 1024, got 0"},
      {{"--prefetch", "-1"}, "training.prefetch must be between 0 and 1048576, got -1"},
      {{"--examples", "-1"}, "muster: --examples -1: data.trainExamples must be between 0 and "},
      {{"--updater", "newton"}, "there is no type \"newton\""},
      {{"--updater", "sdg"}, "; the nearest is sgd\n"},
      {{"--data", "cvs"},
       "muster: --data cvs: data.type: there is no \"cvs\"; the nearest is csv, of mnist, "},
      {{"--set", "listeners.earlyStopping={\"monitor\": \"acuracy\"}"},
       "listeners.earlyStopping.monitor: there is no \"acuracy\"; the nearest is accuracy, of "},
      {{"--threads", "2"},
       "there is no option --threads; the nearest is --threads-per-worker; --help lists the options"},
      {{"--learning-rate=0.1"}, "muster: there is no option --learning-rate: use --lr\n"},
      {{"--test", "new.csv"}, "muster: there is no option --test: use --set data.test=VALUE\n"},
      {{"--train=new.csv"}, "muster: there is no option --train: use --set data.train=VALUE\n"},
      {{"--batch-size", "3"}, "muster: there is no option --batch-size: use --batch\n"},
      {{"--validation-examples", "3"},
       "muster: there is no option --validation-examples: use --set data.validationExamples=VALUE\n"},
      {{"--updater", "adam", "--momentum", "0.5"},
       "muster: --momentum 0.5: network.updater.momentum: there is no such field"},
      {{"--data", "imagenet"}, "data.type: there is no \"imagenet\"; the nearest is images, of mnist, "},
      {{"--data", "generated", "--data-dir", "."}, "data.directory: there is no such field"},
      {{"--device", "tpu"},
       "muster: --device tpu: training.devices tpu: device: expected cpu, cuda or cuda:N, got \"tpu\""},
      {{"--device", "cpu,cpu"}, "training.devices cpu,cpu: device: cpu is named twice in \"cpu,cpu\""},
      {{"--device", "cuda:0,cpu"}, "training.devices cuda:0,cpu: the CPU and GPUs cannot train together yet"},
      {{"--placement", "gpu"}, "training.placement: there is no \"gpu\"; there are auto, "},
      {{"--keep", "3"},
       "muster: --keep 3: listeners.checkpoints.directory: is missing; --checkpoint-dir sets "
       "listeners.checkpoints.directory\n"},
      {{"--checkpoint-dir", "c", "--checkpoint-minutes", "1e300"},
       "listeners.checkpoints.everyMinutes must be between 0 and 100000000, got 1e+300"},
      {{"--group", "a"},
       "muster: --group a: listeners.group needs listeners.curves; --curves sets listeners.curves\n"},
      {{"--page-port", "8080"}, "listeners.pagePort needs listeners.page; --page sets listeners.page\n"},
      {{"--set", "training.workers=0"},
       "muster: --set training.workers=0: training.workers must be between 1 and "},
      {{"--set", "workers"}, "muster: --set workers: expected KEY=VALUE"},
      {{"--set", "lr=0.1"},
       "muster: --set lr=0.1: a run file has no field lr; the nearest is network.updater.learningRate\n"},
      {{"--quiet", "--watch"}, "--watch shows what --quiet leaves out"},
      {{"--model", ""}, "--model needs a value, and it is empty, perhaps an unset variable"},
      {{"--resume", ""}, "--resume needs a value, and it is empty"},
      {{"--checkpoint-dir="}, "--checkpoint-dir"}};
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
  const auto second = test::errorOf(convnet.run(arguments("second", more)), 1);
  CHECK_MESSAGE(contains(second, "c: process "), second);
  CHECK(contains(second, " writes checkpoints into this directory"));
  CHECK(!contains(second, "listener"));  // refused before the training
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

TEST_CASE("a report and curves replace only files of this program") {
  if (!test::kWithPage) return test::skip(test::kNoPage);
  const Convnet convnet;
  const std::string end = " would be replaced, but this program has not written it; give another ";
  for (const std::string name : {"report.html", "confusion.txt", "training.curves.jsonl"}) {
    test::writeFile(convnet.directory / name, "mine");
    const auto run = convnet.runSmall({"--report", "."});
    checkRefusal(run, 1, name + ":" + end + "listeners.report");
    CHECK(run.out.empty());
    CHECK(test::readFile(convnet.directory / name) == "mine");
    std::filesystem::remove(convnet.directory / name);
  }
  test::writeFile(convnet.directory / "my.curves.jsonl", "mine");
  checkRefusal(convnet.runSmall({"--curves", "my.curves.jsonl"}), 1,
               "my.curves.jsonl:" + end + "listeners.curves");
  CHECK(test::readFile(convnet.directory / "my.curves.jsonl") == "mine");
  CHECK(convnet.directory.names() == std::set<std::string>{"my.curves.jsonl"});
  for (int i = 0; i < 2; ++i)
    CHECK(convnet.runSmall({"--report", ".", "--epochs", "1", "--quiet"}).exit == 0);
}

TEST_CASE("a device that is not available is refused before the data are read") {
  const Convnet convnet;
  const auto run = convnet.run({"--data", "generated", "--device", "cuda:99"});
  checkRefusal(run, 1, "training.devices cuda:99: cuda:99 is not there; there ");
  CHECK(run.out.empty());
}

TEST_CASE("a full disk ends a training with a message, and leaves existing files") {
  const Convnet convnet;
  const std::string before("\x02\0\0\0\0\0\0\0{}", 10);  // as a model begins
  test::writeFile(convnet.directory / "model.safetensors", before);
  auto launch = convnet.launch(Convnet::small({"--epochs", "1", "--quiet", "--model", "model.safetensors"}));
  launch.fileSizeLimit = 64 * 1024;  // the model takes 3.4 MB
  const auto run = test::runProgram(Convnet::kExecutable, launch);
  checkRefusal(run, 1, "model.safetensors: could not be written: File too large");
  CHECK(test::readFile(convnet.directory / "model.safetensors") == before);
  CHECK(convnet.directory.names() == std::set<std::string>{"model.safetensors"});
}

TEST_CASE("a NaN score ends a training, naming the worker and the batch once") {
  const Convnet convnet;
  const auto run = convnet.runSmall(test::withReport({"--lr", "1e9", "--quiet"}, "report"));
  checkRefusal(run, 1, "failed in batch ");
  CHECK(contains(run.err, "muster: worker "));
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
                 "muster: mnist: train-images-idx3-ubyte.gz is not in " + (convnet.cache / "mnist").string() +
                     "; download: http://127.0.0.1:1/train-images-idx3-ubyte.gz could not be fetched"));
  CHECK(convnet.directory.names().empty());
}

TEST_CASE("without a data option the program uses generated digits, and the first line says why") {
  const Convnet convnet;
  auto launch = convnet.launch({"--examples", "200", "--epochs", "1", "--quiet"});
  const std::string notice = "MNIST is not available, so this trains on generated digits (";
  const auto unreachable = test::succeeded(test::runProgram(Convnet::kExecutable, launch));
  CHECK(unreachable.out.starts_with(notice + "mnist: train-images-idx3-ubyte.gz is not in "));
  CHECK(contains(unreachable.out, "; download: http://127.0.0.1:1/"));

  const auto file = convnet.cache / "file";
  test::writeFile(file, "in the way");
  launch.environment["MUSTER_CACHE_DIR"] = file.string();
  const auto noCache = test::succeeded(test::runProgram(Convnet::kExecutable, launch));
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
  const auto drawn = test::succeeded(test::runProgram(Convnet::kExecutable, launch));
  CHECK(contains(drawn.out, "train-images-idx3-ubyte.gz is neither in " +
                                (convnet.directory / "empty").string() + " nor in "));
}

TEST_CASE("broken data give an error, and are never replaced by others") {
  const Convnet convnet;
  checkRefusal(convnet.run({"--data-dir", "missing"}), 1,
               "missing: no such directory, given by data.directory");
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
