#include "examples/options.h"

#include <sstream>

#include "tests/examples/sandbox.h"
#include "tests/support/thrown.h"

// The command line of the small examples.

namespace muster {
namespace {

using test::contains;
using test::thrown;

/// An option of each type.
struct Values {
  int workers = 2;
  std::int64_t epochs = 3;
  double rate = 0.5;
  std::string file = "a";
  bool flag = false;

  bool read(const std::vector<std::string_view>& arguments) {
    return example::readOptions(arguments, "An example.",
                                {{"workers", &workers, ""},
                                 {"epochs", &epochs, ""},
                                 {"lr", &rate, ""},
                                 {"model", &file, ""},
                                 {"imagenet", &flag, ""}});
  }
};

TEST_CASE("options are read as two words or one, and others keep their defaults") {
  Values values;
  CHECK(values.read({"--workers", "4", "--lr=1e-3", "--model", "b=c", "--imagenet"}));
  CHECK(values.workers == 4);
  CHECK(values.epochs == 3);
  CHECK(values.rate == 1e-3);
  CHECK(values.file == "b=c");
  CHECK(values.flag);
  CHECK(values.read({"--epochs", "9223372036854775807", "--lr", "0"}));
  CHECK(values.epochs == 9'223'372'036'854'775'807);
}

TEST_CASE("a wrong option is refused by its name") {
  const std::vector<std::pair<std::vector<std::string_view>, std::string>> refused{
      {{"--resume", "c"}, "there is no option --resume: --help lists all, and muster train has more"},
      {{"file"}, "there is no option file: --help lists all, and muster train has more"},
      {{"workers", "2"}, "there is no option workers: --help lists all, and muster train has more"},
      {{"--workers"}, "--workers needs a value"},
      {{"--workers", "0"}, "--workers needs a whole number of at least 1, got \"0\""},
      {{"--workers", "2147483648"}, "--workers needs a whole number of at least 1, got \"2147483648\""},
      {{"--epochs=1.5"}, "--epochs needs a whole number of at least 1, got \"1.5\""},
      {{"--epochs="}, "--epochs needs a whole number of at least 1, got \"\""},
      {{"--lr", "nan"}, "--lr needs a number of at least 0, got \"nan\""},
      {{"--lr", "inf"}, "--lr needs a number of at least 0, got \"inf\""},
      {{"--lr", "-1"}, "--lr needs a number of at least 0, got \"-1\""},
      {{"--model="}, "--model needs a value that is not empty"},
      {{"--imagenet=1"}, "--imagenet takes no value"}};
  for (const auto& [arguments, sentence] : refused) {
    Values values;
    CHECK_REFUSED(values.read(arguments), sentence);
  }
}

TEST_CASE("each small example has a help, and a line and a status for what is wrong") {
  for (const char* executable :
       {MUSTER_CHAR_LSTM, MUSTER_DATA_PARALLEL, MUSTER_FINE_TUNE, MUSTER_LENET_FROM_SCRATCH, MUSTER_OWN_LAYER,
        MUSTER_OWN_MODEL, MUSTER_OWN_STRATEGY, MUSTER_RESNET18_FASHION}) {
    CAPTURE(executable);
    const test::Sandbox program(executable);
    const auto name = std::filesystem::path(executable).filename().string();
    const auto help = test::succeeded(program.run({"--help"}));
    CHECK(program.run({"-h"}).out == help.out);
    CHECK(help.err.empty());
    std::istringstream lines(help.out);
    int options = 0;
    for (std::string line; std::getline(lines, line); options += line.starts_with("  --") ? 1 : 0)
      CHECK(line.size() <= 118);
    CHECK(options >= 3);
    const auto unknown = program.run({"--page"});
    CHECK(unknown.exit == 2);
    CHECK(unknown.out.empty());
    CHECK(unknown.err == name + ": there is no option --page: --help lists all, and muster train has more\n");
  }
  const test::Sandbox lenet(MUSTER_LENET_FROM_SCRATCH);
  CHECK(contains(
      test::errorOf(
          lenet.run({"--data", "generated", "--examples", "20", "--epochs", "1", "--model", "no/m"}), 1),
      "lenet_from_scratch: no/m: cannot be written"));
  CHECK(lenet.run({"--data", "faces"}).err ==
        "lenet_from_scratch: --data must be mnist or generated, got faces\n");
  CHECK(lenet.run({"--device", "cuda:99", "--data", "generated"}).exit == 1);
}

}  // namespace
}  // namespace muster
