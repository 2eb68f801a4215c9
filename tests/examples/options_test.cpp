#include "examples/options.h"

#include "tests/examples/sandbox.h"
#include "tests/support/thrown.h"

// The command line of the small examples.

namespace muster {
namespace {

/// An option of each type.
struct Values {
  int workers = 2;
  std::int64_t epochs = 3;
  double rate = 0.5;
  std::string file = "a";
  bool flag = false;

  bool read(const std::string& line) {
    const auto words = test::wordsOf(line);
    return example::readOptions({words.begin(), words.end()}, "An example.",
                                {{"workers", &workers, ""},
                                 {"epochs", &epochs, ""},
                                 {"lr", &rate, ""},
                                 {"model", &file, ""},
                                 {"imagenet", &flag, ""}});
  }
};

TEST_CASE("options are read as two words or one, and others keep their defaults") {
  Values values;
  CHECK(values.read("--workers 4 --lr=1e-3 --model b=c --imagenet"));
  CHECK(values.workers == 4);
  CHECK(values.epochs == 3);
  CHECK(values.rate == 1e-3);
  CHECK(values.file == "b=c");
  CHECK(values.flag);
  CHECK(values.read("--epochs 9223372036854775807 --lr 0"));
  CHECK(values.epochs == 9'223'372'036'854'775'807);
}

TEST_CASE("a wrong option is refused by its name") {
  const auto refused = [](const std::string& line, const std::string& sentence) {
    CHECK_REFUSED(Values().read(line), sentence);
  };
  for (const std::string none : {"--resume", "file", "workers"})
    refused(none + " 2", "there is no option " + none + ": --help lists all");
  refused("--workers", "--workers needs a value");
  for (const std::string count : {"0", "2147483648"})
    refused("--workers " + count, "--workers needs a whole number of at least 1, got \"" + count + "\"");
  refused("--epochs=1.5", "--epochs needs a whole number of at least 1, got \"1.5\"");
  refused("--epochs=", "--epochs needs a whole number of at least 1, got \"\"");
  for (const std::string rate : {"nan", "inf", "-1"})
    refused("--lr " + rate, "--lr needs a number of at least 0, got \"" + rate + "\"");
  refused("--model=", "--model needs a value that is not empty");
  refused("--imagenet=1", "--imagenet takes no value");
}

TEST_CASE("each small example has a help, and a line and a status for what is wrong") {
  for (const char* executable : {MUSTER_CHAR_LSTM, MUSTER_DATA_PARALLEL, MUSTER_FINE_TUNE,
                                 MUSTER_MNIST_CONVNET, MUSTER_LENET_FROM_SCRATCH, MUSTER_OWN_LAYER,
                                 MUSTER_OWN_MODEL, MUSTER_OWN_STRATEGY, MUSTER_RESNET18_FASHION}) {
    if (!test::isHere(executable)) continue;
    CAPTURE(executable);
    const test::Sandbox program(executable);
    const auto name = std::filesystem::path(executable).filename().string();
    const auto help = program.succeeds("--help");
    CHECK(program("-h").out == help.out);
    CHECK(help.err.empty());
    CHECK_CONTAINS(test::errorOf(program.shell(name + " --help >/dev/full"), 1),
                   name + ": standard output could not be written: ");
    int options = 0;
    for (const auto& line : test::linesOf(help.out)) {
      options += line.starts_with("  --") ? 1 : 0;
      CHECK(line.size() <= 118);
    }
    CHECK(options >= 3);
    program.refuses(
        "--page",
        name + ": there is no option --page: --help lists all" +
            (test::contains(help.out, "muster train has more") ? ", and muster train has more\n" : "\n"));
  }
  const test::Sandbox lenet(MUSTER_LENET_FROM_SCRATCH);
  lenet.refuses("--data generated --examples 20 --epochs 1 --model no/m",
                "lenet_from_scratch: no/m: cannot be written", 1);
  lenet.refuses("--data faces", "lenet_from_scratch: --data must be mnist or generated, got faces\n");
  lenet.refuses("--device cuda:99 --data generated", "cuda:99", 1);
}

}  // namespace
}  // namespace muster
